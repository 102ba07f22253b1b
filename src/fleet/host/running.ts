/**
 * One call at its host: from the message that asks for it to its last reply.
 *
 * It replies exactly once with a value or an error, or with the parts of a stream and their end.
 */
import { AsyncResource } from 'node:async_hooks'
import { type AnyZone, type TraceContext, withTrace } from '../../zone/index.ts'
import type { Clock, End, Message } from '../engine/engine.ts'
import { type Payloads, written } from '../wire.ts'
import { type Outcome, type Target, errorFrame } from './task.ts'

/** The value of a stream. */
const NOTHING = new Uint8Array()
/** How long a stream that is left has to end. */
const LEAVE_MS = 1000
const TASK = new URL('./task.js', import.meta.url)

/** What a call needs of its host. */
export interface Offered {
  readonly zone: AnyZone
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
  readonly #controller = new AbortController()
  /** Parts that may still be sent. */
  #credit: number
  #wake: () => void = () => {}
  #parts = 0
  /** Ends the function's iterator, once there is one. */
  #leave: (() => void) | undefined
  #isLeft = false
  #endTimer: End = () => {}

  /** @param credit How many parts the caller takes at first; 0: it takes the value. */
  constructor(id: string, offered: Offered, message: Message, credit: number) {
    this.#id = id
    this.#offered = offered
    this.#message = message
    this.#credit = credit
  }

  /** Resolves when it has replied. Never rejects. */
  async run(name: string, carried: unknown, timeoutMs: number | undefined): Promise<void> {
    const { payloads, target } = this.#offered
    try {
      const args = await payloads.open(carried)
      const task: Target = { ...target, name }
      if (this.#credit > 0) return await this.#stream(task, args, timeoutMs)
      const outcome = await this.#execute('call', task, args, timeoutMs)
      await this.#reply(outcome as Outcome)
    } catch (error) {
      await this.#reply([true, errorFrame(error)]).catch(() => {}) // a ping finds that it is over
    }
  }

  /** Its caller does not wait any more. A stream is left first, so that its function's `finally` runs. */
  cancel(reason: unknown): void {
    const abort = (): void => this.#controller.abort(reason)
    if (this.#leave === undefined) return abort()
    this.#isLeft = true
    this.#endTimer = this.#offered.clock.after(LEAVE_MS, abort)
    this.#leave()
    this.#wake()
  }

  /** The caller has read so many parts more. */
  more(count: number): void {
    this.#credit += count
    this.#wake()
  }

  async #execute(
    fn: string,
    task: Target,
    args: Uint8Array,
    timeoutMs: number | undefined,
  ): Promise<unknown> {
    const { signal } = this.#controller
    return (await this.#offered.zone.execute(TASK, fn, [task, args], { timeoutMs, signal })).value
  }

  async #reply([isError, frame]: Outcome): Promise<void> {
    let carried
    try {
      carried = await this.#offered.payloads.carry(frame, this.#id)
    } catch (error) {
      if (isError) throw error
      return this.#reply([true, errorFrame(error)])
    }
    const kind = isError ? 'error' : 'value'
    this.#message.reply(written(kind, carried, this.#offered.inFlight() - 1, this.#parts))
  }

  async #stream(task: Target, args: Uint8Array, timeoutMs: number | undefined): Promise<void> {
    const items = (await this.#execute('stream', task, args, timeoutMs)) as AsyncIterableIterator<Outcome>
    // One that fails then has no reader.
    this.#leave = () => void items.return?.().catch(() => {})
    try {
      for await (const [isError, frame] of items) {
        if (isError) return await this.#reply([true, frame])
        while (this.#credit <= 0 && !this.#isLeft)
          await new Promise<void>((resolve) => (this.#wake = resolve))
        if (this.#isLeft) return
        this.#credit--
        const carried = await this.#offered.payloads.carry(frame, this.#id)
        this.#message.reply(written('part', carried, this.#parts++))
      }
      await this.#reply([false, NOTHING])
    } finally {
      this.#endTimer()
    }
  }
}
