/**
 * A call in flight: the promise of its caller, its deadline and its signal.
 *
 * Settles exactly once. A deadline or a signal rejects the call at once. The task is removed if it has not
 * started; if it has, its own signal is aborted, and after `graceMs` the zone's owner replaces its worker,
 * even if this thread has ended. The call keeps its number until the core returns the task, so a late result
 * is dropped. Where the result contains streams, the limits hold until the last item is read.
 * Over 400 lines: one state in several classes, each of which overrides a part of how it settles.
 */
import { Status, Cancelled, native } from '../../native/index.ts'
import { readFrame } from '../../transport/internal.ts'
import { unwatch, watch } from '../../base/index.ts'
import { ZoneError } from '../errors.ts'
import { Result } from '../ground/result.ts'
import { type Arrival, type Bridge, thisBridge, valueOf } from '../../bridge/index.ts'
import type { CpuAccount } from '../ground/cpu.ts'
import type { CallRecord, Taken } from '../ground/record.ts'
import type { CallOrder, OrderOptions } from './order.ts'
import { UNSAID, forgetReason, keepReason } from './reasons.ts'
import { type FailedCall, rejection, stackless } from './stacks.ts'

/** The zone of a call, as far as the call needs it. */
export interface CallZone extends FailedCall {
  readonly handle: number
  /** Whether its workers are other processes. */
  readonly isOutside: boolean
  /** What keeps the zone's handle open, where this is a copy of it. */
  readonly of: CallZone | undefined
}

/** The limits of a call. */
export interface CallOptions {
  /**
   * Longest time from the call to its end, in ms, waiting included; then it fails with `TASK_TIMEOUT`.
   * Default: no limit.
   */
  readonly timeoutMs?: number | undefined
  /** Aborting it ends the call with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a call that runs on one worker. */
export interface TaskOptions extends CallOptions, OrderOptions {}

/** Checked {@link TaskOptions}, as calls need them. */
export interface CallLimits extends CallOptions {
  readonly order?: CallOrder | undefined
  /**
   * The deadline of the larger call that this one is a part of, by the machine's clock; that call ends this
   * one then. Default: none.
   */
  readonly deadlineMs?: number | undefined
  /** Called when the deadline ends the call, before it rejects. */
  readonly expired?: (() => void) | undefined
  /** What a call that is sent later than it was made takes with it. Default: that of the calling code. */
  readonly taken?: Taken | undefined
}

/** None, whatever a program has put on `Object.prototype`. */
export const NO_LIMITS: CallLimits = Object.freeze({
  timeoutMs: undefined,
  signal: undefined,
  order: undefined,
  expired: undefined,
})

type Resolve = (value: unknown) => void
type Reject = (reason: unknown) => void

export class ValueCall implements Arrival {
  readonly zone: CallZone
  readonly resolve: Resolve
  /** Rejects with an error that needs no stack: the caller's own. */
  readonly reject: Reject

  constructor(zone: CallZone, resolve: Resolve, reject: Reject) {
    this.zone = zone
    this.resolve = resolve
    this.reject = reject
  }

  ended(status: number, bytes: Uint8Array, start: number, end: number): void {
    if (status !== Status.done) return this.fail(failureOf(this.zone, status, bytes, start, end))
    let value: unknown
    try {
      value = this.receive(bytes, start, end)
    } catch (error) {
      return this.fail(error)
    }
    this.resolve(value)
  }

  /** Rejects with an error of another thread; its stack continues with the caller's frames. */
  fail(error: unknown): void {
    this.resolve(rejection(error, this.zone))
  }

  /** The value of a result. @throws {TransportError} when this thread cannot read it. */
  receive(bytes: Uint8Array, start: number, end: number): unknown {
    return valueOf(bytes, start, end)
  }

  late(error: unknown): void {
    this.fail(error)
  }

  /** Ends with an error of this thread: a signal, a refusal. */
  refuse(why: unknown): void {
    this.reject(why)
  }

  /** The task has succeeded, but not the clean-up of a source that it has read from. */
  closed(why: unknown): void {
    this.reject(why)
  }

  /** Ends with a value that did not come as bytes. */
  succeed(value: unknown): void {
    this.resolve(value)
  }

  /**
   * Whether items of its result are still to be read, for which its limits hold. `read` is called when all of
   * them were taken or dropped.
   */
  untilRead(_read: () => void): boolean {
    return false
  }

  /** The result contains streams, and its task goes on. Returns what replaces this call. */
  streamed(make: (call: ValueCall) => ValueCall): ValueCall {
    return make(this)
  }
}

/** A call without a promise: `resolve` and `reject` are any functions. */
export class BareCall extends ValueCall {
  override fail(error: unknown): void {
    this.reject(error)
  }
}

/** The payload of `undefined`: all of them share it. */
const NOTHING = Object.freeze(new Uint8Array(0))

/** A call whose promise becomes a {@link Result}. */
export class ResultCall extends ValueCall {
  override receive(bytes: Uint8Array, start: number, end: number): unknown {
    const result = new Result(start === end ? NOTHING : bytes.slice(start, end))
    // Read at once what refers to memory that is let go after this batch.
    if (thisBridge().settlesAttachments) void result.value
    return result
  }

  override succeed(value: unknown): void {
    this.resolve(Result.of(value))
  }
}

export class ExpiringCall extends ResultCall {
  readonly #expired: () => void

  constructor(zone: CallZone, resolve: Resolve, reject: Reject, expired: () => void) {
    super(zone, resolve, reject)
    this.#expired = expired
  }

  override late(error: unknown): void {
    this.#expired()
    this.fail(error)
  }
}

/** What a task is aborted with whose caller has stopped to wait, and does not state why. */
export const leftAlone = (): DOMException => new DOMException('The caller no longer waits', 'AbortError')

/**
 * A call with a deadline or a signal: the bridge settles this, and this settles the call.
 * ```text
 *  made ─ listen ─▶ written ─ begin ─▶ sent ─ ended ─▶ over: the call has its result
 *                      │ refused         │ signal, deadline, cancel, abandon: the core cancels the task
 *                      ▼                 ▼
 *                    drop              over: refused, or left alone (abandon); `ended` settles nothing
 * ```
 */
export class LimitedCall implements Arrival {
  #call: ValueCall
  protected readonly zone: CallZone
  protected readonly bridge: Bridge
  readonly #signal: AbortSignal | undefined
  #number = -1
  #isInherited = false
  #deadline: NodeJS.Timeout | undefined
  #reason: number = UNSAID
  #over = false
  /** False: the task has ended, and items of its result are still to be read. */
  #isRead = true
  /** The signal was aborted before the call was sent: while its arguments were read. */
  #early = false

  constructor(bridge: Bridge, zone: CallZone, call: ValueCall, signal: AbortSignal | undefined) {
    this.bridge = bridge
    this.zone = zone
    this.#call = call
    this.#signal = signal
  }

  /** Listen to the signal, before anything is sent: it may not be what it seems, and throw. */
  listen(): void {
    if (this.#signal !== undefined) watch(this.#signal, this.#aborted)
  }

  /** Nothing was sent. */
  drop(): void {
    this.#release()
  }

  /** The error of a call whose caller has no time left, so that nothing is sent. */
  outOfTime(): Error {
    this.#isInherited = true
    return stackless(() => this.lateError(0, false))
  }

  /**
   * The core has accepted the call under this number.
   * @param isInherited Whether the time is what the caller has left of its own.
   */
  begin(number: number, timeoutMs: number | undefined, isInherited = false): void {
    this.#number = number
    this.#isInherited = isInherited
    if (timeoutMs !== undefined) this.#deadline = setTimeout(() => this.#late(timeoutMs), timeoutMs)
    if (this.#early) this.#aborted()
  }

  ended(status: number, bytes: Uint8Array, start: number, end: number): void {
    forgetReason(this.#reason)
    const wasOver = this.#over
    this.#over = true
    if (!wasOver) {
      this.#call.ended(status, bytes, start, end)
      this.#isRead = !this.#call.untilRead(() => this.#release())
    }
    if (this.#isRead) this.#release()
    else this.#deadline?.unref()
  }

  /**
   * Stop waiting, as an aborted signal does, without settling. No effect on a call that has ended.
   * @param why What the task's signal is aborted with.
   */
  abandon(why?: unknown): void {
    if (!this.#over) this.#stopWaiting(() => why ?? leftAlone())
  }

  /** End as if a signal were aborted with `why`. No effect on a call that has ended. */
  cancel(why: unknown): void {
    if (this.#over && this.#isRead) return
    this.#stopWaiting(() => why)
    this.#call.refuse(why)
  }

  /** The result contains streams, and its task goes on. */
  streamed(make: (call: ValueCall, cancel: (why: unknown) => void) => ValueCall): void {
    // The worker of a call that has ended here is notified of that.
    if (!this.#over) this.#call = this.#call.streamed((call) => make(call, (why) => this.cancel(why)))
  }

  readonly #aborted = (): void => {
    if (this.#number < 0) this.#early = true
    else this.cancel(this.#signal?.reason)
  }

  #late(timeoutMs: number): void {
    const why = (): unknown => new DOMException(`The task did not end within ${timeoutMs} ms`, 'TimeoutError')
    const started = this.#stopWaiting(why)
    this.#call.late(stackless(() => this.lateError(timeoutMs, started)))
  }

  protected lateError(timeoutMs: number, started: boolean): Error {
    const facts = { zone: this.zone.id, timeoutMs, started }
    return new ZoneError('TASK_TIMEOUT', this.#isInherited ? { ...facts, inherited: true } : facts)
  }

  #stopWaiting(why: () => unknown): boolean {
    const hasEnded = this.#over
    this.#over = true
    this.#release()
    return hasEnded || this.giveUp(this.#number, why)
  }

  /** Cancel the call, which the caller no longer waits for; returns whether the task had started. */
  protected giveUp(number: number, why: () => unknown): boolean {
    const reason = keepReason(why())
    const became = native.cancel(this.zone.handle, number, reason)
    if (became === Cancelled.over) this.bridge.release(number)
    if (became === Cancelled.running) this.#reason = reason
    else forgetReason(reason)
    return became === Cancelled.running || became === Cancelled.ended
  }

  #release(): void {
    this.#isRead = true
    clearTimeout(this.#deadline)
    if (this.#signal !== undefined) unwatch(this.#signal, this.#aborted)
  }
}

/** A call whose result has the CPU time of its task, for the account of the code that has called. */
class MeteredCall extends LimitedCall {
  readonly #cpu: CpuAccount
  readonly #sentMs = performance.now()

  constructor(
    bridge: Bridge,
    zone: CallZone,
    call: ValueCall,
    signal: AbortSignal | undefined,
    cpu: CpuAccount,
  ) {
    super(bridge, zone, call, signal)
    this.#cpu = cpu
  }

  override ended(status: number, bytes: Uint8Array, start: number, end: number): void {
    const left = this.#cpu.receive(bytes, start, end, this.#sentMs)
    // Reading the result is the caller's own.
    const { meter } = this.#cpu
    meter.chargeFor(this.#cpu, left - start, () => super.ended(status, bytes, start, left))
  }
}

/** A call with limits, or with a record that asks for the CPU time of its task. */
export function limitedCall(
  bridge: Bridge,
  zone: CallZone,
  call: ValueCall,
  signal: AbortSignal | undefined,
  record: CallRecord | undefined,
): LimitedCall {
  const cpu = record?.cpu
  if (cpu === undefined) return new LimitedCall(bridge, zone, call, signal)
  return new MeteredCall(bridge, zone, call, signal, cpu)
}

/** A broadcast with limits. Cancelling ends the wait alone: every worker still runs it. */
export class LimitedBroadcast extends LimitedCall {
  protected override giveUp(number: number): boolean {
    // To the core nothing here waits for it any more; no task receives the reason.
    native.cancel(this.zone.handle, number, UNSAID)
    return true
  }

  protected override lateError(timeoutMs: number): Error {
    return new ZoneError('BROADCAST_TIMEOUT', { zone: this.zone.id, timeoutMs })
  }
}

/** A wait for capacity with limits; a cancelled one leaves the queue of waiters. */
export class LimitedCapacityWait extends LimitedCall {
  protected override giveUp(number: number): boolean {
    if (native.zoneReadyCancel(this.zone.handle, number) === 1) this.bridge.release(number)
    return false
  }
}

/** A call that ends without a value: a broadcast, a close. */
export class PlainCall extends ValueCall {
  override receive(): undefined {
    return undefined
  }
}

export function failureOf(
  zone: CallZone,
  status: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): unknown {
  switch (status) {
    case Status.closed:
      return stackless(() => new ZoneError('ZONE_CLOSED', { zone: zone.id }))
    case Status.orphaned:
      return stackless(() => new ZoneError('ZONE_OWNER_DIED', { zone: zone.id }))
    default:
      try {
        return readFrame(bytes, start, end)
      } catch (error) {
        return error
      }
  }
}
