/**
 * A call in flight to another process: its host, its deadline, its signal, and its end.
 *
 * It settles exactly once. A host that refuses, and one that is not there, mean that nothing has run, so the
 * next host is asked; whatever comes after that ends the call, since the function may have run.
 */
import { decode, encode } from '../../transport/index.ts'
import { type TraceContext, ZoneError, currentTrace } from '../../zone/index.ts'
import { unwatch, watch } from '../../base/index.ts'
import { shorterMs } from '../../zone/internal.ts'
import type { End, Messages } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import { type Carried, type Payloads, isCount, readParts, written } from '../wire.ts'
import type { Host, Hosts, Waiting } from './hosts.ts'

/** What calls need of their zone. */
export interface Caller {
  readonly messages: Messages
  readonly payloads: Payloads
  readonly hosts: Hosts
  readonly zone: string
  readonly version: string | undefined
  /** The URL of the module here that its hosts run; `undefined`: not known. */
  readonly module: string | undefined
  /** The id of this process, in ids of calls and in clocks. */
  readonly id: string
  /** Calls that end when the connection does. */
  readonly calls: Set<Waiting>
}

export interface CallLimits {
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
}

let count = 0

/** What a call does with what comes; both end it, but for parts. */
export interface Outcome {
  value(payload: Uint8Array): void
  failed(why: unknown): void
  part?(payload: Uint8Array): void
  /** A limit of the caller ends it: called before `failed`. */
  limited?(): void
}

export class FarCall implements Waiting {
  readonly id: string
  isDoubted = false
  readonly #caller: Caller
  readonly #outcome: Outcome
  readonly #limits: CallLimits
  /** Whether its time is what the calling code has left. */
  readonly #isInherited: boolean
  readonly #begunMs: number
  /** The trace of the calling code. */
  readonly #trace: TraceContext | undefined
  /** Hosts that have not taken it. */
  #refused: Set<Host> | undefined
  #host: Host | undefined
  #endAsk: End = () => {}
  #endTimer: End = () => {}
  readonly #aborted = (): void => this.#limited(this.#limits.signal?.reason)
  #isOver = false
  /** Parts that came before their turn, and the number of the next one. */
  #early: Map<number, unknown> | undefined
  #next = 0
  /** How many parts it takes, of the whole stream. */
  #partsMax = 0
  #endAt = Infinity
  /** What ends it behind the last part. */
  #atEnd: () => void = () => {}
  #isOpening = false

  constructor(caller: Caller, limits: CallLimits, outcome: Outcome) {
    this.id = `${caller.id}.${++count}`
    this.#caller = caller
    const timeoutMs = shorterMs(limits.timeoutMs)
    this.#isInherited = timeoutMs !== limits.timeoutMs
    this.#limits = { timeoutMs, signal: limits.signal }
    this.#outcome = outcome
    this.#begunMs = caller.messages.clock.nowMs()
    this.#trace = currentTrace()
    caller.calls.add(this)
  }

  /** @param credit How many parts it takes at first; 0: it takes the value. */
  begin(name: string, args: readonly unknown[], credit: number): void {
    const { timeoutMs, signal } = this.#limits
    this.#partsMax = credit
    try {
      if (signal !== undefined) {
        signal.throwIfAborted()
        watch(signal, this.#aborted)
      }
      if (timeoutMs === 0) return this.#late()
      if (timeoutMs !== undefined)
        this.#endTimer = this.#caller.messages.clock.after(timeoutMs, () => this.#late())
      const carried = this.#caller.payloads.carry(encode(args), this.id)
      if (!(carried instanceof Promise)) return this.#offer(name, carried, credit)
      carried.then((put) => this.#offer(name, put, credit)).catch(this.#failed)
    } catch (error) {
      this.#failed(error)
    }
  }

  readonly #failed = (error: unknown): void => this.#settle(() => this.#outcome.failed(error))

  /** Send it to one host after the other until one has accepted it. */
  #offer(name: string, carried: Carried, credit: number): void {
    if (this.#isOver) return
    const { hosts, zone } = this.#caller
    const host = hosts.pick(this.#refused)
    if (host !== undefined) return this.#send(host, name, carried, credit)
    // Those that were not there are forgotten by now: either some are full or nobody is left.
    if (hosts.usable.length === 0)
      return void hosts
        .find()
        .then(() => this.#offer(name, carried, credit))
        .catch(this.#failed)
    const tasksMax = hosts.usable.reduce((sum, { inFlightMax }) => sum + inFlightMax, 0)
    throw new ZoneError('ZONE_FULL', { zone, tasksMax })
  }

  #send(host: Host, name: string, carried: Carried, credit: number): void {
    const { messages, hosts, id, version } = this.#caller
    const { timeoutMs } = this.#limits
    const nowMs = messages.clock.nowMs()
    const leftMs = timeoutMs === undefined ? 0 : Math.max(1, timeoutMs - (nowMs - this.#begunMs))
    const parts = ['run', this.id, version ?? '', name, id, nowMs, leftMs, credit, carried] as const
    const message = this.#trace === undefined ? written(...parts) : written(...parts, this.#trace)
    this.#host = host
    this.isDoubted = false
    hosts.begin(host, this)
    const again = (isThere: boolean, inFlight?: unknown): void => {
      this.#endAsk()
      hosts.end(host, this, inFlight)
      this.#host = undefined
      this.#refused ??= new Set()
      this.#refused.add(host)
      if (!isThere) hosts.drop(host)
      try {
        this.#offer(name, carried, credit)
      } catch (error) {
        this.#failed(error)
      }
    }
    this.#endAsk = messages.ask(host.subject, message, (reply) => {
      if (this.#isOver) return
      if (reply === undefined) return again(false)
      const [kind, first, second, number] = readParts(reply) ?? []
      if (kind === 'full') again(true, first)
      else if (kind === 'leaving') again(false)
      else if (kind === 'part') this.#part(host, first, second)
      else if (kind === 'value' || kind === 'error')
        this.#ends(Number(number), () => this.#replied(kind, first, second))
    })
  }

  #replied(kind: 'value' | 'error', carried: unknown, inFlight: unknown): void {
    const settle = (payload: Uint8Array): void =>
      this.#settle(() => {
        if (kind === 'value') this.#outcome.value(payload)
        else this.#outcome.failed(decode(payload))
      }, inFlight)
    try {
      const payload = this.#caller.payloads.open(carried)
      if (payload instanceof Uint8Array) return settle(payload)
      // It has its reply, so that the host no longer runs it means nothing.
      this.isDoubted = false
      this.#endAsk()
      payload
        .then(settle)
        .catch((error: unknown) => this.#settle(() => this.#outcome.failed(error), inFlight))
    } catch (error) {
      this.#settle(() => this.#outcome.failed(error), inFlight)
    }
  }

  /** Parts may come in any order, and their payloads too; no more are kept than were asked for. */
  #part({ id }: Host, carried: unknown, number: unknown): void {
    const partsMax = this.#partsMax
    if (!isCount(number) || number < this.#next) return
    if (number >= partsMax)
      return this.cancel(new FleetError('HOST_CREDIT', { zone: this.#caller.zone, host: id, partsMax }))
    this.#early ??= new Map()
    this.#early.set(number, carried)
    void this.#drain()
  }

  /** @param number How many parts come before it. */
  #ends(number: number, atEnd: () => void): void {
    this.#endAt = number
    this.#atEnd = atEnd
    if (number === this.#next) atEnd()
  }

  async #drain(): Promise<void> {
    const early = this.#early
    if (this.#isOpening || early === undefined) return
    this.#isOpening = true
    try {
      while (!this.#isOver && early.has(this.#next)) {
        const payload = await this.#caller.payloads.open(early.get(this.#next))
        early.delete(this.#next++)
        if (!this.#isOver) this.#outcome.part?.(payload)
      }
      if (this.#next === this.#endAt) this.#atEnd()
    } catch (error) {
      this.cancel(error)
    } finally {
      this.#isOpening = false
    }
  }

  /** The reader takes `parts` more. The message has the sum, so it may be lost or come twice. */
  more(parts: number): void {
    this.#partsMax += parts
    this.#notify('more', this.#partsMax)
  }

  /** Ends it with a reason, on its host too. */
  cancel(reason: unknown): void {
    if (this.#isOver) return
    let frame: Uint8Array | undefined
    try {
      frame = encode(reason)
    } catch {
      // The host's task has a reason of its own then.
    }
    this.#notify('cancel', frame)
    this.#settle(() => this.#outcome.failed(reason))
  }

  #notify(kind: string, what: unknown): void {
    if (this.#isOver || this.#host === undefined) return
    try {
      this.#caller.messages.send(this.#host.subject, written(kind, this.id, what))
    } catch {
      // The connection has ended, which ends all its calls.
    }
  }

  lost(why: Error | FleetError): void {
    this.#settle(() => this.#outcome.failed(why))
  }

  #late(): void {
    const { timeoutMs } = this.#limits
    const facts = { zone: this.#caller.zone, timeoutMs: timeoutMs!, started: this.#host !== undefined }
    const inherited = this.#isInherited ? { inherited: true as const } : {}
    this.#limited(new ZoneError('TASK_TIMEOUT', { ...facts, ...inherited }))
  }

  #limited(why: unknown): void {
    if (this.#isOver) return
    this.#outcome.limited?.()
    this.cancel(why)
  }

  #settle(settle: () => void, inFlight?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#endAsk()
    this.#endTimer()
    const { signal } = this.#limits
    if (signal !== undefined) unwatch(signal, this.#aborted)
    this.#caller.calls.delete(this)
    if (this.#host !== undefined) this.#caller.hosts.end(this.#host, this, inFlight)
    try {
      settle()
    } catch (error) {
      // The value, or the error, is of a class that this process cannot read.
      this.#outcome.failed(error)
    }
  }
}
