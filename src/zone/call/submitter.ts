/**
 * Submits calls to one zone: writes arguments into this thread's scratch and crosses into the core.
 *
 * The core either accepts a call, and settles it through the bridge, or refuses it with a reason; then
 * nothing was queued, and memory that was lent to the frame stays here.
 */
import { assert } from '../../base/index.ts'
import { type Bridge, thisBridge } from '../../bridge/index.ts'
import {
  DEPTH_MASK,
  DEPTH_UNKNOWN,
  Given,
  HEADER_BYTES,
  OUTCOME,
  Order,
  Refused,
  Status,
  UNKNOWN_FUNCTION,
  native,
} from '../../native/index.ts'
import { calledArguments, calledNumber, capturesOf, functionNumber } from '../../transport/internal.ts'
import { writeArguments } from '../context/frame.ts'
import type { CallRecord, Taken } from '../ground/record.ts'
import { takenFor } from './send.ts'
import { type ZoneSettings, checkFixed } from '../ground/settings.ts'
import { ZoneError, refusal } from '../errors.ts'
import { beforeFork, currentZoneId } from '../ground/current.ts'
import {
  type CallLimits,
  type CallZone,
  type LimitedCall,
  type ValueCall,
  failureOf,
  limitedCall,
} from './call.ts'
import { type CallOrder, WorkerNumber } from './order.ts'
import { takeStreamedResults } from './streamed.ts'
import { callDepth } from '../ground/task.ts'

export const EMPTY = new Uint8Array(0)

/** Receives a function that aborts the call in flight. */
export type Begun = (cancel: (why: unknown) => void) => void

export class Submitter {
  readonly bridge: Bridge
  /** Whether this thread is a worker of the zone. */
  readonly isOwn: boolean
  readonly #handle: number
  readonly #zone: CallZone
  readonly #settings: ZoneSettings

  constructor(zone: CallZone, settings: ZoneSettings) {
    this.bridge = thisBridge()
    takeStreamedResults(this.bridge)
    this.isOwn = currentZoneId() === zone.id
    this.#handle = zone.handle
    this.#zone = zone
    this.#settings = settings
    if (currentZoneId() !== undefined) this.bridge.notesDepth = true
  }

  /** Returns the number of the call. @throws {ZoneError} the refusal. */
  send(
    fn: number,
    args: readonly unknown[],
    arrival: ValueCall | LimitedCall,
    record?: CallRecord,
    order?: CallOrder,
  ): number {
    if (order !== undefined) return this.#sendInOrder(fn, args, arrival, record, order)
    if (this.isOwn) beforeFork()
    const bridge = this.bridge
    const length = this.write(args, record)
    if (length < 0) return this.#sendFrame(fn, bridge.writer.overflow, arrival)
    const call = bridge.take(arrival)
    this.#fill(fn, length, call)
    native.submit()
    this.#sent(bridge.given[OUTCOME], length, call)
    return call
  }

  #sendInOrder(
    fn: number,
    args: readonly unknown[],
    arrival: ValueCall | LimitedCall,
    record: CallRecord | undefined,
    order: CallOrder,
  ): number {
    const worker = this.#workerOf(order)
    if ((order.word & Order.exclusive) !== 0) this.#checkExclusive()
    if (this.isOwn) beforeFork()
    const bridge = this.bridge
    const { given } = bridge
    const length = this.write(args, record)
    given[Given.order] = order.word
    given[Given.worker] = worker
    given[Given.tenant] = order.tenant[0]
    given[Given.tenantHigh] = order.tenant[1]
    if (length < 0) return this.#sendFrame(fn, bridge.writer.overflow, arrival, order)
    const call = bridge.take(arrival)
    this.#fill(fn, length, call)
    native.submitOrdered()
    given[Given.order] = 0
    this.#sent(given[OUTCOME], length, call, order)
    return call
  }

  /**
   * No task of the zone may wait for an exclusive call, since its worker would wait for the task. Of a call
   * by a task that another one called it is unknown which zones' tasks wait for it; code of another zone's
   * worker that belongs to no task, such as the handler of a server, is waited for by no task.
   * @throws {ZoneError} `ZONE_DEADLOCK`.
   */
  #checkExclusive(): void {
    const depth = callDepth()
    if (!this.isOwn && (depth === DEPTH_UNKNOWN || (depth & DEPTH_MASK) <= 1)) return
    throw new ZoneError('ZONE_DEADLOCK', { zone: this.#zone.id, call: 'an exclusive call of a task' })
  }

  /** The number of the worker that is to run a call, and one more; 0: any. */
  #workerOf({ affinity }: CallOrder): number {
    if (affinity === undefined) return 0
    if (affinity instanceof WorkerNumber) return 1 + affinity.worker
    checkFixed('affinity', this.#settings)
    return 1 + ((affinity[0] >>> 0) % this.#settings.workers)
  }

  /**
   * Send a new function object by its call site: one crossing for both. A function of a new call site is
   * numbered first, and the frame that was written is sent under its number. Only arguments that are written
   * without leaving this thread come before it is known whether the function can travel.
   * @throws {ZoneError} the refusal.
   */
  sendFresh(fn: Function, args: readonly unknown[], arrival: ValueCall): void {
    if (!args.every(isPrimitive) || capturesOf(fn) !== undefined)
      return void this.send(calledNumber(fn), calledArguments(fn, args), arrival)
    if (this.isOwn) beforeFork()
    const bridge = this.bridge
    const length = args.length === 0 ? 0 : bridge.write(args, 'args')
    let frame = bridge.writer.overflow
    if (length >= 0) {
      const call = bridge.take(arrival)
      this.#fill(0, length, call)
      native.submitFunction(fn)
      const outcome = bridge.given[OUTCOME]
      if (outcome !== UNKNOWN_FUNCTION) return this.#sent(outcome, length, call)
      bridge.release(call)
      // Numbering reads properties of the function, whose getters may call a zone and write to this memory.
      frame = bridge.out.slice(HEADER_BYTES, HEADER_BYTES + length)
    }
    this.#sendFrame(functionNumber(fn), frame, arrival)
  }

  /** Send a call with its limits, if it has any. @throws {ZoneError} the refusal. */
  submit(fn: number, args: readonly unknown[], call: ValueCall, limits: CallLimits, begun?: Begun): void {
    const { signal, order } = limits
    if (signal?.aborted === true) return call.refuse(signal.reason)
    const taken = takenFor(limits)
    const record = taken?.record
    if (taken?.timeoutMs === undefined && signal === undefined && record?.cpu === undefined)
      return void this.send(fn, args, call, record, order)
    const limited = this.submitLimited(fn, args, call, limits, taken)
    begun?.((why) => limited.cancel(why))
  }

  /** Send a call that can be ended. @throws {ZoneError} the refusal. */
  submitLimited(
    fn: number,
    args: readonly unknown[],
    call: ValueCall,
    { signal, order }: CallLimits,
    taken: Taken | undefined,
  ): LimitedCall {
    const limited = limitedCall(this.bridge, this.#zone, call, signal, taken?.record)
    if (taken?.isInherited === true && taken.timeoutMs === 0) throw limited.outOfTime()
    try {
      limited.listen()
      const number = this.send(fn, args, limited, taken?.record, order)
      limited.begin(number, taken?.timeoutMs, taken?.isInherited)
      return limited
    } catch (error) {
      limited.drop()
      throw error
    }
  }

  /** Write arguments, with what the call takes with it; as `Bridge.write`. @throws {TransportError} */
  protected write(args: readonly unknown[], record: CallRecord | undefined): number {
    return writeArguments(this.bridge, args, record, true)
  }

  /** The arguments of a broadcast. @throws {TransportError} */
  frame(args: readonly unknown[]): Uint8Array {
    return this.bridge.frame(args, 'args', true)
  }

  /** Throws for a refused broadcast; an accepted one owns the memory that was lent to it. */
  checkBroadcast(outcome: number, bytes: number): void {
    this.check(outcome, bytes)
    if (this.bridge.writer.lent.length > 0) this.bridge.writer.letGo()
  }

  /** @throws {ZoneError} the core's refusal, unless `outcome` is 0. */
  check(outcome: number, taskBytes: number): void {
    if (outcome !== 0) this.#refuse(outcome, taskBytes)
  }

  /** Send arguments that are in memory of their own, in the order that is written, if any. */
  #sendFrame(
    fn: number,
    frame: Uint8Array = EMPTY,
    arrival: ValueCall | LimitedCall,
    order?: CallOrder,
  ): number {
    const { bridge } = this
    const call = bridge.take(arrival)
    this.noteDepth()
    const outcome = native.submitLarge(this.#handle, fn, frame, call)
    bridge.given[Given.order] = 0
    this.#sent(outcome, frame.length, call, order)
    return call
  }

  /** Write how deep the next call is, in a thread that runs tasks. */
  noteDepth(): void {
    const { given, notesDepth, depthMin } = this.bridge
    if (!notesDepth) return
    // A half is left for what it calls.
    const least = Math.min(depthMin, this.#settings.callDepthMax >>> 1)
    const word = callDepth()
    given[Given.depth] = word + Math.max(0, least - (word & DEPTH_MASK))
  }

  #fill(fn: number, length: number, call: number): void {
    const { given } = this.bridge
    given[Given.zone] = this.#handle
    given[Given.fn] = fn
    given[Given.length] = length
    given[Given.call] = call
    this.noteDepth()
  }

  /** An accepted call takes with it the memory that its arguments were lent. */
  #sent(outcome: number, length: number, call: number, order?: CallOrder): void {
    const bridge = this.bridge
    if (outcome !== 0) {
      bridge.release(call)
      this.#refuse(outcome, length, order?.given.tenant)
    }
    if (bridge.writer.lent.length > 0) bridge.writer.letGo()
  }

  #refuse(code: number, taskBytes: number, tenant: string | number = ''): never {
    const { lent } = this.bridge.writer
    const movedBytes = lent.reduce((sum, buffer) => sum + buffer.byteLength, 0)
    if (lent.length > 0) this.bridge.discard()
    const zone = this.#zone.id
    const { tasksMax, taskBytesMax, queueBytesMax, broadcastsMax, callDepthMax } = this.#settings
    const { tasksPerTenantMax } = this.#settings
    switch (code) {
      case Refused.full:
        throw refusal(new ZoneError('ZONE_FULL', { zone, tasksMax }))
      case Refused.tenantFull: {
        const facts = { zone, tenant, tasksPerTenantMax: Number(tasksPerTenantMax) }
        throw refusal(new ZoneError('ZONE_TENANT_FULL', facts))
      }
      case Refused.bytesFull: {
        const facts = { zone, queueBytesMax, taskBytes: taskBytes + movedBytes }
        throw refusal(new ZoneError('ZONE_BYTES_FULL', facts))
      }
      case Refused.tooLarge:
        throw refusal(new ZoneError('TASK_TOO_LARGE', { zone, taskBytesMax, taskBytes }))
      case Refused.closed:
        throw this.#failure() ?? new ZoneError('ZONE_CLOSED', { zone })
      case Refused.tooDeep:
        throw new ZoneError('ZONE_CALL_TOO_DEEP', { zone, callDepthMax })
      case Refused.deadlock:
        throw new ZoneError('ZONE_DEADLOCK', { zone, call: 'a call that its own broadcast waits for' })
      default:
        assert(code === Refused.broadcastsFull, `the core refuses for a known reason, not ${code}`)
        throw new ZoneError('ZONE_BROADCASTS_FULL', { zone, broadcastsMax })
    }
  }

  /** The `ZONE_START_FAILED` of a zone whose workers could not be started. */
  #failure(): unknown {
    const frame = native.zoneFailure(this.#handle)
    return frame === undefined ? undefined : failureOf(this.#zone, Status.died, frame, 0, frame.length)
  }
}

function isPrimitive(value: unknown): boolean {
  return value === null || (typeof value !== 'object' && typeof value !== 'function')
}
