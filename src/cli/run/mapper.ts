/**
 * Calls the user's function in the workers of a zone: a task for a group of items, or for each item.
 *
 * A group takes a worker some milliseconds. Where items overlap on a worker, or may time out, they travel one
 * by one. A worker that dies ends with the item that it ran: the lines of those before it are in the journal
 * of the group, and those behind it have not begun and run elsewhere, so no item runs twice. A group whose
 * item turns out to be slow is split at that item: only lines that follow it in order wait for it. The time
 * of `--timeout` begins when the function starts, not when its item is queued.
 */
import { resolve } from 'node:path'
import { assert, ChunkSize, threads } from '../../base/index.ts'
import type { RunOptions } from '../arguments.ts'
import { Clocks, clockBytes, monotonicMs } from './clocks.ts'
import { CliError } from '../errors.ts'
import { Cutoff, CUTOFF_BYTES } from './cutoff.ts'
import type { Lines } from './item-runner.ts'
import { type Job, JOB_KEY } from './job.ts'
import { Journal, JOURNAL_BYTES } from './journal.ts'
import { failureLine, isFailure, type RecordStyle } from './records.ts'
import type { GroupEnd, Problem } from './worker.ts'

/** The part of a zone that is needed here. */
export interface ItemZone {
  execute(
    module: string,
    name: string,
    args: unknown[],
    options?: { readonly signal: AbortSignal },
  ): Promise<{ readonly value: unknown }>
  /** The functions of a module as calls, each resolving to its value: quicker than `execute` for many. */
  module(url: string): { readonly [name: string]: (...args: unknown[]) => Promise<unknown> }
  /** Start all workers now; until then there may be fewer. */
  startAll(): void
  close(): Promise<void>
}

export interface ItemZoneSettings {
  readonly workers: number
  /** Tasks that one worker may have begun and not ended. */
  readonly tasksPerWorkerMax: number
  /** Most tasks in the zone at once. */
  readonly tasksMax: number
  /** Most bytes that waiting tasks can take; a quarter of it, the text of one item. */
  readonly queueBytesMax: number
  /** How long a cancelled task may go on before its worker is ended, with all that has begun there. */
  readonly graceMs: number
  /** The module whose `teardown` each worker runs before it ends. */
  readonly teardown?: string
}

/** Opens a zone; tests pass one of their own. */
export type OpenZone = (settings: ItemZoneSettings) => Promise<ItemZone>

/** Most calls in flight, however many workers with however many items each are asked for. */
export const CALLS_MAX = 16_384
const TASKS_PER_WORKER = 256
/** Groups in flight: a number for each worker, and a number more. */
const GROUPS = { perWorker: 2, more: 2 }
/** Most items of a group. */
const GROUP_ITEMS_MAX = 1024
/** Groups are looked at this often; one whose item has not changed since is split. */
const SPLIT_MS = 50
/**
 * An item that times out ends at once if it waits. Otherwise it blocks its thread, or shares the thread with
 * an item that does; ending the thread ends them all, so items that share it get more time.
 */
const GRACE_MS = { alone: 100, shared: 1000 }
const WORKER_URL = new URL('./worker.js', import.meta.url).href

/** A journal, and its number. */
interface Numbered {
  readonly journal: Journal
  readonly index: number
}

/** A group in flight. */
interface Group {
  readonly journal: Journal
  readonly itemCount: number
  /** How many of its items had begun when it was looked at last. */
  begunCount: number
  /** End its call with the items that have ended; those behind the next one run elsewhere. */
  readonly split: (ended: Lines) => void
}

export class Mapper {
  /** Most calls that make sense at once. */
  readonly runningMax: number
  readonly #zone: ItemZone
  readonly #style: RecordStyle
  readonly #worker: { readonly [name: string]: (...args: unknown[]) => Promise<unknown> }
  readonly #cutoff: Cutoff
  readonly #timeouts: Timeouts | undefined
  /** Those that no group uses, by number; `undefined` where items travel one by one. */
  readonly #journals: Numbered[] | undefined
  readonly #groups = new Set<Group>()
  readonly #watch: NodeJS.Timeout | undefined
  readonly #size = new ChunkSize(GROUP_ITEMS_MAX, JOURNAL_BYTES / 2)

  private constructor(zone: ItemZone, job: Job, runningMax: number, timeoutMs: number) {
    this.runningMax = runningMax
    this.#zone = zone
    this.#style = job.style
    this.#worker = zone.module(WORKER_URL)
    this.#cutoff = new Cutoff(job.cutoff)
    this.#timeouts = job.clocks === undefined ? undefined : new Timeouts(job.clocks, runningMax, timeoutMs)
    const { journals } = job
    if (journals !== undefined) {
      const one = (_: unknown, index: number) => ({ journal: new Journal(journals, index), index })
      this.#journals = Array.from({ length: runningMax }, one)
      this.#watch = setInterval(() => this.#look(), SPLIT_MS).unref()
    }
  }

  /**
   * Start the workers.
   * @param url The module for `import()`. @param options The run. @param style How lines are written.
   * @param openZone Called once the environment data of the workers is set.
   */
  static async open(
    url: string,
    options: RunOptions,
    style: RecordStyle,
    openZone: OpenZone,
  ): Promise<Mapper> {
    const isGrouped = options.concurrency === 1 && options.timeoutMs === 0
    const perWorker = Math.max(TASKS_PER_WORKER, 2 * options.concurrency)
    const runningMax = isGrouped
      ? GROUPS.perWorker * options.workers + GROUPS.more
      : Math.min(CALLS_MAX, perWorker * options.workers)
    const journals = isGrouped ? new SharedArrayBuffer(runningMax * JOURNAL_BYTES) : undefined
    const cutoff = new SharedArrayBuffer(CUTOFF_BYTES)
    const clocks = options.timeoutMs === 0 ? undefined : new SharedArrayBuffer(clockBytes(runningMax))
    const { module, exportName, exportNamed, items, failFast } = options
    const json = items === 'ndjson'
    const { journal, journalHash: hashes } = options
    const kept = journal === undefined ? undefined : { file: resolve(journal), items, hashes }
    const words = { url, module, exportName, exportNamed, json, style, failFast, kept }
    const job: Job = { ...words, cutoff, clocks, journals }
    threads().setEnvironmentData(JOB_KEY, job)
    const zone = await openZone({
      workers: options.workers,
      tasksPerWorkerMax: options.concurrency,
      tasksMax: runningMax + 1,
      // A UTF-16 unit takes at most three bytes; the rest of a task is a few numbers.
      queueBytesMax: Math.max(2 ** 30, 4 * (3 * options.lineCharsMax + 1024)),
      ...(journal !== undefined && { teardown: WORKER_URL }),
      graceMs: options.concurrency === 1 ? GRACE_MS.alone : GRACE_MS.shared,
    })
    return new Mapper(zone, job, runningMax, options.timeoutMs)
  }

  /**
   * Load the function in a worker.
   * @throws {CliError} `CLI_MODULE_FAILED`, `CLI_EXPORT_MISSING` or `CLI_EXPORT_NOT_FUNCTION`.
   */
  async prepare(): Promise<void> {
    const problem = (await this.#zone.execute(WORKER_URL, 'prepare', [])).value as Problem | undefined
    if (problem !== undefined) throw new CliError(problem.code, problem.facts)
  }

  /** How many items the next call should have. */
  sizeNow(): number {
    return this.#journals === undefined ? 1 : this.#size.now
  }

  /** Run items, the first of which has that number: their lines, and how many of them are done. */
  async call(texts: readonly string[], first: number): Promise<Lines> {
    if (this.#journals !== undefined) return this.#group(this.#journals, texts, first)
    const line = (await (this.#timeouts === undefined
      ? this.#worker['mapItem'](texts[0], first)
      : this.#timedCall(this.#timeouts, texts[0], first))) as string | undefined
    if (line === undefined) return { text: '', lineCount: 0, failedCount: 0, itemCount: 1 }
    return { text: line, lineCount: 1, failedCount: isFailure(line) ? 1 : 0, itemCount: 1 }
  }

  #group(free: Numbered[], texts: readonly string[], first: number): Promise<Lines> {
    const used = free.pop()
    assert(used !== undefined, 'a journal for each call')
    const { journal, index } = used
    journal.clear()
    return new Promise((resolve) => {
      let before: Lines | undefined
      const split = (ended: Lines): void => {
        before = ended
        const running = whole.then((lines) => without(ended, lines))
        resolve({ ...ended, running })
      }
      const group: Group = { journal, itemCount: texts.length, begunCount: 0, split }
      this.#groups.add(group)
      const whole = this.#ended(journal, texts, first, index).finally(() => {
        this.#groups.delete(group)
        free.push(used)
      })
      void whole.then((lines) => {
        if (before === undefined) resolve(lines)
      })
    })
  }

  /** Never rejects. */
  async #ended(journal: Journal, texts: readonly string[], first: number, index: number): Promise<Lines> {
    try {
      const [ms, isCut, last] = (await this.#worker['mapGroup'](texts, first, index)) as GroupEnd
      const { text, endedCount, failedCount } = journal.read()
      const lines = withLine(text, endedCount, failedCount, last)
      this.#size.learn(Math.max(1, lines.lineCount), ms, lines.text.length)
      return isCut ? { ...lines, itemCount: texts.length } : lines
    } catch (thrown) {
      const { text, begunCount, endedCount, failedCount } = journal.read()
      // If no item ran, the next one may run elsewhere; if none has, another may die as this one did.
      const isBetween = begunCount === endedCount && endedCount > 0
      if (isBetween) return withLine(text, endedCount, failedCount, undefined)
      const line = failureLine(thrown, first + endedCount, texts[endedCount], this.#style)
      return withLine(text, endedCount, failedCount, line)
    }
  }

  /** Split the groups whose item runs since the last time. */
  #look(): void {
    for (const group of this.#groups) {
      const { journal, itemCount } = group
      const { begunCount } = journal
      const isSlow = begunCount > 0 && begunCount === group.begunCount
      group.begunCount = begunCount
      // The item of the last one, or the only one, keeps nothing waiting.
      if (!isSlow || itemCount === 1 || !journal.close(begunCount)) continue
      this.#groups.delete(group)
      const { text, endedCount, failedCount } = journal.peek()
      // Otherwise it has ended just now, and with it the group.
      if (endedCount < begunCount) group.split(withLine(text, endedCount, failedCount, undefined))
    }
  }

  /** There is work for all workers. */
  startAll(): void {
    this.#zone.startAll()
  }

  /** No item starts that is later than the last one that has, except items up to `upTo`. */
  stopStarting(upTo: number): void {
    if (upTo > 0) this.#cutoff.mayStart(upTo)
    this.#cutoff.close()
  }

  async close(): Promise<void> {
    this.#timeouts?.close()
    clearInterval(this.#watch)
    await this.#zone.close()
    threads().setEnvironmentData(JOB_KEY, undefined)
  }

  async #timedCall(timeouts: Timeouts, text: string, item: number): Promise<string | undefined> {
    const { clock, signal } = timeouts.take()
    try {
      const result = await this.#zone.execute(WORKER_URL, 'mapItem', [text, item, clock], { signal })
      return result.value as string | undefined
    } catch (thrown) {
      // Whatever the zone made of the abort, the reason is ours.
      throw signal.aborted ? signal.reason : thrown
    } finally {
      timeouts.release(clock)
    }
  }
}

/** The lines of `count` items, and one more if there is one. */
function withLine(text: string, count: number, failedCount: number, line: string | undefined): Lines {
  if (line === undefined) return { text, lineCount: count, failedCount, itemCount: count }
  const lineCount = count + 1
  const whole = count === 0 ? line : `${text}\n${line}`
  return {
    text: whole,
    lineCount,
    failedCount: failedCount + (isFailure(line) ? 1 : 0),
    itemCount: lineCount,
  }
}

/** The lines of a group behind those that were taken from it: of one item. */
function without(taken: Lines, { text, lineCount, failedCount }: Lines): Lines {
  return {
    text: taken.lineCount === 0 ? text : text.slice(taken.text.length + 1),
    lineCount: lineCount - taken.lineCount,
    failedCount: failedCount - taken.failedCount,
    itemCount: 1,
  }
}

/** The clocks of the calls in flight, and the abort of those that run too long. */
class Timeouts {
  readonly #clocks: Clocks
  readonly #timeoutMs: number
  readonly #controllers: (AbortController | undefined)[]
  readonly #free: number[]
  readonly #timer: NodeJS.Timeout

  constructor(memory: SharedArrayBuffer, clockCount: number, timeoutMs: number) {
    this.#clocks = new Clocks(memory)
    this.#timeoutMs = timeoutMs
    this.#controllers = new Array<AbortController | undefined>(clockCount).fill(undefined)
    this.#free = Array.from({ length: clockCount }, (_, index) => clockCount - 1 - index)
    this.#timer = setInterval(() => this.#check(), Math.min(50, Math.max(2, timeoutMs / 20)))
    this.#timer.unref()
  }

  /** A clock for one call, and the signal that is aborted when it has run too long. */
  take(): { clock: number; signal: AbortSignal } {
    const clock = this.#free.pop() as number
    const controller = new AbortController()
    this.#controllers[clock] = controller
    return { clock, signal: controller.signal }
  }

  release(clock: number): void {
    this.#clocks.clear(clock)
    this.#controllers[clock] = undefined
    this.#free.push(clock)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    const nowMs = monotonicMs()
    for (const [clock, controller] of this.#controllers.entries()) {
      if (controller === undefined || controller.signal.aborted) continue
      if (this.#clocks.runningMs(clock, nowMs) < this.#timeoutMs) continue
      controller.abort(new CliError('CLI_ITEM_TIMEOUT', { timeoutMs: this.#timeoutMs }))
    }
  }
}
