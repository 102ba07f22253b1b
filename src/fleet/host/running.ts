/**
 * One call at its host: from the message that asks for it to its last reply.
 *
 * It replies exactly once with a value or an error, or with the parts of a stream and their end.
 */
import { AsyncResource } from 'node:async_hooks'
import { decode } from '../../transport/index.ts'
import { type TraceContext, withTrace } from '../../zone/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import type { Clock, End, Message } from '../engine/engine.ts'
import { AHEAD_MAX } from '../settings.ts'
import { type Carried, type Payloads, isCount, written } from '../wire.ts'
import { type Outcome, type Target, errorFrame, ofZone } from '../worker/task.ts'

/** The value of a stream. */
const NOTHING = new Uint8Array()
/** How long a stream that is left has to end. */
const LEAVE_MS = 1000
const TASK = new URL('../worker/task.js', import.meta.url)
const CALL = { module: TASK, name: 'call' }

/** What a call needs of its host. */
export interface Offered {
  readonly zone: RemoteZone
  readonly payloads: Payloads
  readonly clock: Clock
  readonly target: Omit<Target, 'name'>
  /** How many calls run. */
  inFlight(): number
}

/** Belongs to no call. What arrives runs in the context of what has connected, or of who sends from here. */
const OUTSIDE = new AsyncResource('CORESPUN')

/** Run `work` in the trace of whoever has asked for it, and in no other context. */
export const inTrace = <Value>(trace: TraceContext | undefined, work: () => Value): Value =>
  OUTSIDE.runInAsyncScope(() => (trace === undefined ? work() : withTrace(trace, work)))

export class Running {
  readonly #id: string
  readonly #offered: Offered
  readonly #message: Message
  /** Called when it has replied, or has nothing to reply to; once or twice. */
  readonly #over: () => void
  /** Ends its task. */
  #stop: (why: unknown) => void = () => {}
  #isOver = false
  /** How many checks of the host ago its caller has asked for it. */
  silence = 0
  /** How many parts the caller takes, of the whole stream. */
  #partsMax = 0
  #wake: () => void = () => {}
  #parts = 0
  /** Ends the function's iterator, once there is one. */
  #leave: (() => void) | undefined
  /** Why its stream was left before its end: who still reads it receives that, and no end. */
  #left: { readonly why: unknown } | undefined
  #endTimer: End = () => {}

  /** @param credit How many parts the caller takes at first; 0, or no count: it takes the value. */
  constructor(id: string, offered: Offered, message: Message, credit: unknown, over: () => void) {
    this.#id = id
    this.#offered = offered
    this.#message = message
    this.more(credit)
    this.#over = over
  }

  run(name: string, carried: unknown, timeoutMs: number | undefined): void {
    const { payloads, target } = this.#offered
    const task: Target = { ...target, name }
    try {
      const args = payloads.open(carried)
      if (args instanceof Uint8Array) return this.#begin(task, args, timeoutMs)
      args.then((opened) => this.#begin(task, opened, timeoutMs)).catch(this.#failed)
    } catch (error) {
      this.#failed(error)
    }
  }

  #begin(task: Target, args: Uint8Array, timeoutMs: number | undefined): void {
    if (this.#isOver) return
    if (this.#partsMax > 0)
      return void this.#stream(task, args, timeoutMs).catch(this.#failed).finally(this.#over)
    const { zone } = this.#offered
    const given = [task, args]
    this.#stop = zone.begin(CALL, given, (outcome) => this.#end(outcome as Outcome), this.#failed, {
      timeoutMs,
      signal: undefined,
      order: undefined,
    })
  }

  readonly #failed = (error: unknown): void =>
    this.#end([true, errorFrame(ofZone(error, this.#offered.target.zone))])

  /** Its caller does not wait any more. A stream is left first, so that its function's `finally` runs. */
  cancel(reason: unknown): void {
    if (this.#leave === undefined) {
      this.#stop(reason)
      return this.#failed(reason)
    }
    const abort = (): void => this.#stop(reason)
    this.#left = { why: reason }
    this.#endTimer = this.#offered.clock.after(LEAVE_MS, abort)
    this.#leave()
    this.#wake()
  }

  /**
   * How many parts of the whole stream the caller takes. What it may have in advance is bounded, whatever it
   * asks for; a message that comes twice or late changes nothing.
   */
  more(partsMax: unknown): void {
    if (!isCount(partsMax) || partsMax <= this.#partsMax) return
    this.#partsMax = Math.min(partsMax, this.#parts + AHEAD_MAX)
    this.#wake()
  }

  /** Reply, for the first and last time. */
  #end(outcome: Outcome): void {
    if (this.#isOver) return
    this.#isOver = true
    try {
      const carried = this.#offered.payloads.carry(outcome[1], this.#id)
      if (!(carried instanceof Promise)) return this.#reply(outcome[0], carried)
      carried
        .then((put) => this.#reply(outcome[0], put))
        .catch((error: unknown) => this.#lost(outcome, error))
    } catch (error) {
      this.#lost(outcome, error)
    }
  }

  #reply(isError: boolean, carried: Carried): void {
    this.#over()
    const kind = isError ? 'error' : 'value'
    this.#message.reply(written(kind, carried, this.#offered.inFlight(), this.#parts))
  }

  /** The outcome cannot be carried. Where it is that error itself, a ping finds that the call is over. */
  #lost([isError]: Outcome, error: unknown): void {
    if (isError) return this.#over()
    this.#isOver = false
    this.#failed(error)
  }

  async #stream(task: Target, args: Uint8Array, timeoutMs: number | undefined): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    this.#stop = (why) => controller.abort(why)
    const { value } = await this.#offered.zone.execute(TASK, 'stream', [task, args], { timeoutMs, signal })
    const items = value as AsyncIterableIterator<Outcome>
    // One that fails then has no reader.
    this.#leave = () => void items.return?.().catch(() => {})
    try {
      for await (const [isError, frame] of items) {
        if (isError) return this.#end([true, frame])
        while (this.#parts >= this.#partsMax && this.#left === undefined)
          await new Promise<void>((resolve) => (this.#wake = resolve))
        if (this.#left !== undefined) break
        const carried = await this.#offered.payloads.carry(frame, this.#id)
        this.#message.reply(written('part', carried, this.#parts++))
      }
      if (this.#left === undefined) this.#end([false, NOTHING])
      else this.#failed(this.#left.why)
    } finally {
      this.#endTimer()
    }
  }
}

/** What a caller aborts with. */
export function reasonIn(frame: unknown): unknown {
  try {
    if (frame instanceof Uint8Array) return decode(frame)
  } catch {
    // An instance of a class that is not registered here: the caller has the reason itself.
  }
  return new DOMException('The caller has cancelled the call', 'AbortError')
}
