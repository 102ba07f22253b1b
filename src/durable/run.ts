/**
 * A run, for whoever has started it or looks at it: its result, its state, signals, and its end.
 *
 * It reads and writes what is kept, and needs nothing of the process that has the run.
 */
import { TIMER_MS_MAX, abortSignal, flag, meters, milliseconds, optionsOf, text } from '../base/index.ts'
import { certainly, isDone } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable, wrong } from './errors.ts'
import { again, fork } from './again.ts'
import { keepSignals } from './boxes.ts'
import { explained } from './explain.ts'
import { exposedIn } from './exposed.ts'
import { clear, headOf, journalNamed, replaceHead, wake } from './heads.ts'
import { HOLDER, type Holding, type Running, holdingOf } from './holder.ts'
import { orAborted } from './interrupts.ts'
import type { Journal } from './journal.ts'
import { checkKey, checkName } from './keys.ts'
import {
  type Head,
  type Signal,
  hasEnded,
  inputBeside,
  isBeingCopied,
  journalIn,
  readHead,
  writeHead,
} from './records.ts'
import type { Room } from './room.ts'
import { type RunState, stateOf } from './state.ts'
import { keptOf, valueOf } from './values.ts'

/** What this process has of runs. */
export interface Here {
  /** Resolves when the head may have changed, or after a while. */
  changed(key: string): Promise<void>
  /** Of the definition, if it is an arrow. */
  readonly stages: readonly string[]
  /** When the attempts that run here have begun, by the keys of their steps. */
  running(key: string): Running | undefined
}

const NEVER = new AbortController().signal
const PROGRESS_KINDS = { signal: abortSignal }
const CANCEL_KINDS = { now: flag(false) }
const AGAIN_KINDS = { from: text<undefined>(undefined) }
const FORK_KINDS = { ...AGAIN_KINDS, key: text<undefined>(undefined) }
const RESULT_KINDS = { timeoutMs: milliseconds<undefined>(TIMER_MS_MAX, undefined) }

/**
 * A run. `start()` and `get()` return it; it need not be closed.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Run, durable, runs, step } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const double = durable('double', function* (n: number) {
 *   return yield* step('double', (n: number) => 2 * n, [n])
 * })
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [double] })
 * const run: Run<number> = await work.start('double', 21, { key: 'a' })
 * assert.equal(await run.result(), 42)
 * const { status, steps } = await run.state()
 * assert.deepEqual([status, steps[0].name], ['done', 'double'])
 * ```
 */
export class Run<out Value = unknown> {
  /** The name of its definition. */
  readonly name: string
  /** Unique among the runs of the definition. */
  readonly key: string
  readonly #room: Room
  readonly #here: Here

  /** @internal */
  constructor({ name, key }: RunFacts, room: Room, here: Here) {
    this.name = name
    this.key = key
    this.#room = room
    this.#here = here
  }

  get #facts(): RunFacts {
    return { name: this.name, key: this.key }
  }

  /**
   * Resolves with the value of the run when it has ended, in any process and any number of times; rejects
   * with the error with which it has failed.
   * @param options `timeoutMs`: how long to wait. Default: until it has ended.
   * @throws {RunError} `RUN_UNKNOWN`, `RUN_CANCELLED`, `RUN_TIMEOUT`, `RUN_ARGUMENT`, `RUN_UNREADABLE`.
   */
  async result(options?: { readonly timeoutMs?: number }): Promise<Value> {
    const { timeoutMs } = optionsOf(options, RESULT_KINDS, wrong, 'run.result()')
    const room = this.#room
    const { clock } = room.engine
    const begunMs = clock.nowMs()
    for (;;) {
      const changed = this.#here.changed(this.key)
      const { head } = await headOf(room, this.#facts)
      if (this.#isOver(head)) return this.#valueOf(head)
      const leftMs = timeoutMs === undefined ? undefined : begunMs + timeoutMs - clock.nowMs()
      if (leftMs !== undefined && leftMs <= 0)
        throw new RunError('RUN_TIMEOUT', { ...this.#facts, timeoutMs: timeoutMs as number })
      if (leftMs === undefined) await changed
      else await within(clock, leftMs, changed)
    }
  }

  #valueOf({ status, frame }: Head): Value {
    if (status === 'cancelled') throw new RunError('RUN_CANCELLED', this.#facts)
    const value = readable(this.#facts, this.key, () => valueOf(frame))
    if (status === 'failed') throw value
    return value as Value
  }

  /**
   * Sends a signal to `signal(name)` in the run. It is kept until the run receives it.
   * @throws {RunError} `RUN_UNKNOWN`; `RUN_ENDED`; `RUN_TOO_LARGE` also when too many wait; `RUN_ARGUMENT`.
   */
  async signal(name: string, value?: unknown): Promise<void> {
    checkName('run.signal()', name)
    await this.send({ id: crypto.randomUUID(), name, frame: keptOf(value) })
  }

  /** @internal */
  async send(signal: Signal, isEnd = false): Promise<void> {
    const room = this.#room
    this.#checkOpen((await headOf(room, this.#facts)).head)
    await keepSignals(room, this.#facts, [signal], false, isEnd)
    await this.#wake(room, signal)
  }

  /** Whether it has ended. What `fork()` still writes has not begun. */
  #isOver(head: Head): boolean {
    return hasEnded(head) && !isBeingCopied(head, this.#room.nowMs())
  }

  #checkOpen(head: Head): void {
    if (this.#isOver(head)) throw new RunError('RUN_ENDED', { ...this.#facts, status: head.status })
  }

  /** If the run waits outside of memory, its item is replaced by one that waits for nothing. */
  async #wake(room: Room, { id, name }: Signal): Promise<void> {
    const { head } = await headOf(room, this.#facts)
    if (this.#isOver(head)) {
      await certainly(room.engine, () => clear(room, this.#facts, 'signals'))
      const entries = await this.#journalOf(head).read()
      // It may have been received, and the run ended then.
      if (!entries.some((entry) => entry.signal === id)) this.#checkOpen(head)
      return
    }
    // One that waits for its limit has its turn.
    if (head.status === 'waiting' && head.awaits.includes(name)) await wake(room, this.#facts)
  }

  /**
   * Interrupts the run, wherever it is: its steps are aborted, and its finalizers and `finally` blocks run.
   * It has ended when they have.
   * @param options `now`: end it at once, without its finalizers.
   * @returns `false` if it had ended, or been cancelled, before.
   * @throws {RunError} `RUN_UNKNOWN`, `RUN_ARGUMENT`.
   */
  async cancel(options?: { readonly now?: boolean }): Promise<boolean> {
    const { now } = optionsOf(options, CANCEL_KINDS, wrong, 'run.cancel()')
    const room = this.#room
    const { engine, heads, nowMs } = room
    const atMs = nowMs()
    const by = crypto.randomUUID()
    let end: Uint8Array | undefined
    let before: Head | undefined
    const isCancelled = await certainly(engine, async () => {
      for (;;) {
        const entry = await heads.get(this.key)
        const bytes = entry?.bytes
        if (entry === undefined || bytes === undefined) throw new RunError('RUN_UNKNOWN', this.#facts)
        // It was written, and not confirmed.
        if (end !== undefined && Buffer.compare(end, bytes) === 0) return true
        const head = readable(this.#facts, this.key, () => readHead(bytes))
        if (end !== undefined && !now && head.cancelBy === by) return true
        if (this.#isOver(head) || (!now && head.cancelMs !== undefined)) return false
        before = head
        // A copy that is still written never begins.
        end =
          now || hasEnded(head)
            ? endedBy({ ...head, by }, atMs, engine.messageBytesMax)
            : writeHead({ ...head, cancelMs: atMs, cancelBy: by, dueMs: 0 })
        if (await isDone(heads.put(this.key, end, { revision: entry.revision }))) return true
      }
    })
    if (!isCancelled || before === undefined) return false
    if (!now) await wake(room, this.#facts, before.status === 'running')
    else {
      if (!hasEnded(before)) meters.ended?.('runsEnded', this.name, 'cancelled')
      await this.#reported(before)
      const what = before.ttlMs === undefined ? 'all' : 'timed'
      await certainly(engine, () => clear(room, this.#facts, what))
    }
    return true
  }

  /** Before its item is removed, which would have it reported. */
  async #reported({ parent, id }: Head): Promise<void> {
    const { engine, queue, report } = this.#room
    if (parent === undefined) return
    const item = await certainly(engine, () => queue.find(this.key))
    if (item !== undefined) await report(parent, { id, key: this.key })
  }

  /**
   * Runs it again when it has failed: the step with whose error it has failed is run again, with its key, and
   * what was recorded before is not. One that has diverged is tried again at once.
   * @param options `from`: the `key` of a step in `state()`, from which on all is done anew.
   * @throws {RunError} `RUN_NOT_AGAIN`, `RUN_UNKNOWN`, `RUN_ARGUMENT`, `RUN_UNREADABLE`.
   */
  async again(options?: { readonly from?: string }): Promise<void> {
    await again(this.#room, this.#facts, optionsOf(options, AGAIN_KINDS, wrong, 'run.again()').from)
  }

  /**
   * Starts a copy that has done what this one had done before a step. Ids and random numbers of the copy are
   * those of this one; the keys of its steps are its own.
   * @param options `from`: the `key` of a step in `state()`. `key`: that of the copy; if a run has it, that
   *   run is returned and nothing is started. Default: a random UUID.
   * @throws {RunError} `RUN_NOT_AGAIN` when its input is not kept, `RUN_UNKNOWN`, `RUN_ARGUMENT`,
   *   `RUN_UNREADABLE`.
   */
  async fork(options: { readonly from: string; readonly key?: string }): Promise<Run<Value>> {
    const { from, key = crypto.randomUUID() } = optionsOf(options, FORK_KINDS, wrong, 'run.fork()')
    if (from === undefined) throw wrong('run.fork(): from', 'the key of a step that state() has', from)
    checkKey('run.fork()', key)
    const room = this.#room
    await fork(room, this.#facts, key, from)
    return new Run<Value>({ name: this.name, key }, room, this.#here)
  }

  /** What the run has done so far. @throws {RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
  async state(): Promise<RunState> {
    const { head } = await headOf(this.#room, this.#facts)
    const entries = await this.#journalOf(head).read()
    const running = this.#here.running(this.key)
    const holding = running === undefined ? await this.#holding(head) : { holder: HOLDER, running }
    return stateOf(this.key, head, entries, holding, this.#room.nowMs())
  }

  /** By another process. */
  async #holding(head: Head): Promise<Holding | undefined> {
    return head.status === 'running' ? holdingOf(this.#room, this.key, journalIn(head)) : undefined
  }

  /**
   * The state as text, a line for each step: how long it took, or since when it runs or waits. Of an arrow,
   * the stages that remain have lines, too.
   * @throws {RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`.
   */
  async explain(): Promise<string> {
    return explained(this.name, await this.state(), this.#here.stages, this.#room.nowMs())
  }

  #journalOf(head: Head): Journal {
    return journalNamed(this.#room, this.#facts, journalIn(head))
  }

  /**
   * What the run shows of itself by `expose()`, now and after changes, until it has ended, anywhere.
   * @param options `signal` ends it; so does `return()`.
   * @throws What the function of `expose()` has thrown; {@link RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`,
   *   `RUN_ARGUMENT`; the reason of `signal`.
   */
  progress<State = unknown>(options?: { readonly signal?: AbortSignal }): AsyncGenerator<State> {
    const leaves = new AbortController()
    const values = this.#progress<State>(options, leaves.signal)
    const end = values.return.bind(values)
    // A generator that waits would be ended by the next value only.
    values.return = (value) => {
      leaves.abort()
      return end(value)
    }
    return values
  }

  async *#progress<State>(
    options: { readonly signal?: AbortSignal } | undefined,
    left: AbortSignal,
  ): AsyncGenerator<State> {
    const { signal } = optionsOf(options, PROGRESS_KINDS, wrong, 'run.progress()')
    const { key } = this
    const room = this.#room
    const values = await room.exposed()
    let changed = (): void => {}
    const end = await certainly(room.engine, () => values.watch(() => changed(), { key, from: 'now' }))
    let seen = 0
    try {
      while (!left.aborted) {
        signal?.throwIfAborted()
        const news = new Promise<void>((resolve) => (changed = resolve))
        const ended = this.#here.changed(key)
        // Before its end is written, the last that it shows is.
        const { head } = await headOf(room, this.#facts)
        const entry = await certainly(room.engine, () => values.get(key))
        if (entry?.bytes !== undefined && entry.revision !== seen) {
          seen = entry.revision
          yield exposedIn(this.#facts, entry.bytes) as State
        } else if (this.#isOver(head)) return
        else await orAborted(orAborted(Promise.race([news, ended]), left), signal ?? NEVER)
      }
    } finally {
      end()
    }
  }

  /**
   * Deletes all that is kept of a run that has ended, and frees its key.
   * @returns `false` if it has not ended; nothing is deleted then.
   * @throws {RunError} `RUN_UNKNOWN`.
   */
  async forget(): Promise<boolean> {
    const room = this.#room
    const { engine, heads } = room
    const { head, revision } = await headOf(room, this.#facts)
    if (!this.#isOver(head)) return false
    // Without its input it is not run again: a part of its journal would repeat what it has done.
    const mine = await replaceHead(room, this.key, { ...head, input: undefined }, revision)
    if (mine === undefined) return this.forget()
    // It was ended at once before it had begun anew, or who was to run it again has died.
    for (const id of new Set([journalIn(head), head.before, head.next]))
      if (id !== undefined) await journalNamed(room, this.#facts, id).remove()
    await this.#reported(head)
    // Who has ended it may not have come to that; an item without a head would begin the run from nothing.
    await certainly(engine, () => clear(room, this.#facts, 'all', mine))
    // It may be deleted, and not confirmed.
    await certainly(engine, () => isDone(heads.delete(this.key, mine)))
    return true
  }
}

/** Resolves with the promise, or when the time is over. */
async function within(clock: Room['engine']['clock'], ms: number, promise: Promise<void>): Promise<void> {
  let end = (): void => {}
  await Promise.race([promise, new Promise<void>((resolve) => (end = clock.after(ms, resolve)))])
  end()
}

function endedBy(head: Head, endedMs: number, messageBytesMax: number): Uint8Array {
  const input = inputBeside(head, '', messageBytesMax)
  const end = { endedMs, status: 'cancelled', frame: undefined, dueMs: 0, awaits: [] } as const
  const next = head.next === head.id ? undefined : head.next
  return writeHead({ ...head, ...end, input, next })
}
