/**
 * A run, for whoever has started it or looks at it: its result, its state, signals, and its end.
 *
 * It reads and writes what is kept, and needs nothing of the process that has the run.
 */
import { TIMER_MS_MAX, flag, milliseconds, optionsOf } from '../base/index.ts'
import { certainly, hasCode } from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import { RunError, type RunFacts, readable, wrong } from './errors.ts'
import type { Room } from './held.ts'
import { Journal } from './journal.ts'
import { nameIn, pathIn } from './keys.ts'
import { checkName } from './operations.ts'
import {
  type Head,
  type JournalEntry,
  RECORD_BYTES,
  type RunStatus,
  hasEnded,
  readBox,
  readHead,
  writeBox,
  writeHead,
} from './records.ts'

/** A run in a list. */
export interface RunInfo {
  /** Unique among the runs of its definition. */
  readonly key: string
  /**
   * `waiting`: outside of memory, for a pause or a signal. `diverged`: for code that fits its journal.
   * `cancelling`: its finalizers run, or will.
   */
  readonly status: RunStatus
  /** When it was started, by the clock of the process that has started it. */
  readonly startedAt: Date
  /** `undefined`: it has not ended. */
  readonly endedAt: Date | undefined
}

/** A step, a pause, a wait for a signal or a time, as the journal has it. */
export interface RunStep {
  /** The name of the step; `pause()`, `signal(name)` or `now()`. */
  readonly name: string
  /** The fiber that has asked for it: numbers of forks, each followed by `/`; empty for that of the run. */
  readonly path: string
  /**
   * `retrying`: an attempt has failed, and another follows. `waiting`: until `dueAt`, or for a signal.
   * `left`: its fiber was interrupted.
   */
  readonly status: 'done' | 'failed' | 'retrying' | 'waiting' | 'left'
  /** When that was recorded. */
  readonly at: Date
  /** When the next attempt is made, or a wait ends. */
  readonly dueAt: Date | undefined
  /** Attempts that have failed. */
  readonly failures: number
  /** The error of the last of them. */
  readonly error: unknown
}

/** How far a run is. */
export interface RunState extends RunInfo {
  /** In the order in which they were first recorded. One that runs now is not among them. */
  readonly steps: readonly RunStep[]
  /** How often a process has taken it up again, after a crash or since it had waited outside of memory. */
  readonly resumedCount: number
  /** The error with which it has failed or diverged. */
  readonly error: unknown
}

const CANCEL_KINDS = { now: flag(false) }
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
  /** Resolves when the head may have changed, or after a while. */
  readonly #changed: (key: string) => Promise<void>

  /** @internal */
  constructor({ name, key }: RunFacts, room: Room, changed: (key: string) => Promise<void>) {
    this.name = name
    this.key = key
    this.#room = room
    this.#changed = changed
  }

  get #facts(): RunFacts {
    return { name: this.name, key: this.key }
  }

  /** @throws {RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
  async #head(room: Room): Promise<{ readonly head: Head; readonly revision: number }> {
    const entry = await certainly(room.engine, () => room.heads.get(this.key))
    const bytes = entry?.bytes
    if (entry === undefined || bytes === undefined) throw new RunError('RUN_UNKNOWN', this.#facts)
    return { head: readable(this.#facts, this.key, () => readHead(bytes)), revision: entry.revision }
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
      const changed = this.#changed(this.key)
      const { head } = await this.#head(room)
      if (hasEnded(head)) return this.#valueOf(head)
      const leftMs = timeoutMs === undefined ? undefined : begunMs + timeoutMs - clock.nowMs()
      if (leftMs !== undefined && leftMs <= 0)
        throw new RunError('RUN_TIMEOUT', { ...this.#facts, timeoutMs: timeoutMs as number })
      if (leftMs === undefined) await changed
      else await within(clock, leftMs, changed)
    }
  }

  #valueOf({ status, frame }: Head): Value {
    if (status === 'cancelled') throw new RunError('RUN_CANCELLED', this.#facts)
    const value: unknown = readable(this.#facts, this.key, () => frame && decode(frame))
    if (status === 'failed') throw value
    return value as Value
  }

  /**
   * Sends a signal to `signal(name)` in the run. It is kept until the run receives it.
   * @throws {RunError} `RUN_UNKNOWN`; `RUN_ENDED`; `RUN_TOO_LARGE` also when too many wait; `RUN_ARGUMENT`.
   */
  async signal(name: string, value?: unknown): Promise<void> {
    checkName('run.signal()', name)
    const room = this.#room
    const { engine, boxes } = room
    this.#checkOpen((await this.#head(room)).head)
    const signal = { id: crypto.randomUUID(), name, frame: encode(value) }
    const bytesMax = engine.messageBytesMax - RECORD_BYTES
    await certainly(engine, async () => {
      for (;;) {
        const box = await boxes.get(this.key)
        const signals = readable(this.#facts, 'signals', () => readBox(box?.bytes))
        // It was written, and not confirmed.
        if (signals.some(({ id }) => id === signal.id)) return
        const bytes = writeBox([...signals, signal])
        if (bytes.length > bytesMax)
          throw new RunError('RUN_TOO_LARGE', {
            what: 'what waits of signals',
            bytes: bytes.length,
            bytesMax,
          })
        try {
          return void (await boxes.put(this.key, bytes, { revision: box?.revision ?? 0 }))
        } catch (error) {
          if (!hasCode(error, 'FLEET_CONFLICT')) throw error
        }
      }
    })
    await this.#wake(room, signal.id)
  }

  #checkOpen({ status }: Head): void {
    if (hasEnded({ status })) throw new RunError('RUN_ENDED', { ...this.#facts, status })
  }

  /** If the run waits outside of memory, its item is replaced by one that waits for nothing. */
  async #wake(room: Room, signal: string): Promise<void> {
    const { engine, boxes } = room
    const { head } = await this.#head(room)
    if (hasEnded(head)) {
      await certainly(engine, () => boxes.delete(this.key))
      const entries = await this.#journalOf(room, head).read()
      // It may have been received, and the run ended then.
      if (!entries.some((entry) => entry.signal === signal)) this.#checkOpen(head)
      return
    }
    if (head.status === 'waiting') await this.#lendNow(room)
  }

  /** A process takes it at once. */
  async #lendNow({ engine, queue }: Room): Promise<void> {
    const item = await certainly(engine, () => queue.find(this.key))
    if (item !== undefined) await certainly(engine, () => queue.add(this.key, item.bytes, 1, item))
  }

  /**
   * Interrupts the run, also when it waits outside of memory or its process dies: its steps are aborted, and
   * its finalizers and `finally` blocks run, whose steps are recorded as all others. It has ended when they
   * have: `cancelled`, or `failed` with what they have failed with. One that waits for code that fits its
   * journal is cancelled when that is offered.
   * @param options `now`: end it at once, without its finalizers; of one that is being cancelled, too.
   * @returns Whether this call has cancelled it; `false` if it had ended, or been cancelled, before.
   * @throws {RunError} `RUN_UNKNOWN`, `RUN_ARGUMENT`.
   */
  async cancel(options?: { readonly now?: boolean }): Promise<boolean> {
    const { now } = optionsOf(options, CANCEL_KINDS, wrong, 'run.cancel()')
    const room = this.#room
    const { engine, heads, queue, boxes, nowMs } = room
    const atMs = nowMs()
    let end: Uint8Array | undefined
    let isHeld = false
    const isCancelled = await certainly(engine, async () => {
      for (;;) {
        const entry = await heads.get(this.key)
        const bytes = entry?.bytes
        if (entry === undefined || bytes === undefined) throw new RunError('RUN_UNKNOWN', this.#facts)
        // It was written, and not confirmed.
        if (end !== undefined && Buffer.compare(end, bytes) === 0) return true
        const head = readable(this.#facts, this.key, () => readHead(bytes))
        if (end !== undefined && !now && head.cancelMs === atMs) return true
        if (hasEnded(head) || (!now && head.cancelMs !== undefined)) return false
        isHeld = head.status === 'running'
        end = now ? endedBy(head, atMs) : writeHead({ ...head, cancelMs: atMs, dueMs: 0 })
        try {
          await heads.put(this.key, end, { revision: entry.revision })
          return true
        } catch (error) {
          if (!hasCode(error, 'FLEET_CONFLICT')) throw error
        }
      }
    })
    if (isCancelled && !now && !isHeld) await this.#lendNow(room)
    if (isCancelled && now) {
      await certainly(engine, () => queue.remove(this.key))
      await certainly(engine, () => boxes.delete(this.key))
    }
    return isCancelled
  }

  /** What the run has done so far. @throws {RunError} `RUN_UNKNOWN`, `RUN_UNREADABLE`. */
  async state(): Promise<RunState> {
    const room = this.#room
    const { head } = await this.#head(room)
    const entries = await this.#journalOf(room, head).read()
    const error = ['failed', 'diverged'].includes(head.status) ? errorIn(head.frame) : undefined
    const resumedCount = entries.filter(({ kind }) => kind === 'held').length
    return { ...infoOf(this.key, head), steps: stepsOf(entries), resumedCount, error }
  }

  #journalOf({ engine, journals: values }: Room, { id }: Head): Journal {
    const ends = { goesOn: () => true, lost: () => {} }
    return new Journal({ engine, values, id, run: this.#facts, sinceMs: 0, ...ends })
  }

  /**
   * Deletes all that is kept of a run that has ended, and frees its key.
   * @returns `false` if it has not ended; nothing is deleted then.
   * @throws {RunError} `RUN_UNKNOWN`.
   */
  async forget(): Promise<boolean> {
    const room = this.#room
    const { engine, heads, journals } = room
    const { head, revision } = await this.#head(room)
    if (!hasEnded(head)) return false
    const journal = this.#journalOf(room, head)
    await journal.read()
    // From the end: what dies on the way leaves what a second call finds.
    for (const key of journal.keys.toReversed()) await certainly(engine, () => journals.delete(key))
    await certainly(engine, async () => {
      try {
        await heads.delete(this.key, revision)
      } catch (error) {
        if (!hasCode(error, 'FLEET_CONFLICT')) throw error // deleted, and not confirmed
      }
    })
    return true
  }
}

/** Resolves with the promise, or when the time is over. */
async function within(clock: Room['engine']['clock'], ms: number, promise: Promise<void>): Promise<void> {
  let end = (): void => {}
  await Promise.race([promise, new Promise<void>((resolve) => (end = clock.after(ms, resolve)))])
  end()
}

const endedBy = (head: Head, endedMs: number): Uint8Array =>
  writeHead({
    ...head,
    ...{ endedMs, status: 'cancelled', input: undefined, frame: undefined, dueMs: 0, awaits: [] },
  })

export function infoOf(key: string, head: Head): RunInfo {
  const { startedMs, endedMs, cancelMs } = head
  const status = cancelMs === undefined || hasEnded(head) ? head.status : 'cancelling'
  const endedAt = endedMs === 0 ? undefined : new Date(endedMs)
  return { key, status, startedAt: new Date(startedMs), endedAt }
}

/** What a frame of an error has; one of a class that is not registered here is described. */
function errorIn(frame: Uint8Array | undefined): unknown {
  try {
    return frame && decode(frame)
  } catch (error) {
    return error
  }
}

const STATUS_OF = {
  done: 'done',
  error: 'failed',
  failed: 'retrying',
  begun: 'waiting',
  left: 'left',
} as const

function stepsOf(entries: readonly JournalEntry[]): RunStep[] {
  const steps = new Map<string, RunStep>()
  for (const { kind, key, atMs, frame, dueMs } of entries) {
    const before = steps.get(key)
    if (
      kind === 'held' ||
      kind === 'still' ||
      kind === 'cancel' ||
      before?.status === 'done' ||
      before?.status === 'failed'
    )
      continue
    const isFailure = kind === 'failed' || kind === 'error'
    steps.set(key, {
      name: nameIn(key),
      path: pathIn(key),
      status: STATUS_OF[kind],
      at: new Date(atMs),
      dueAt: dueMs === undefined ? undefined : new Date(dueMs),
      failures: (before?.failures ?? 0) + (isFailure ? 1 : 0),
      error: isFailure ? errorIn(frame) : before?.error,
    })
  }
  return [...steps.values()]
}
