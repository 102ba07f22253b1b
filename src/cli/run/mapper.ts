/**
 * Calls the user's function in the workers of a zone, one task per item.
 *
 * `--timeout` counts from the moment the function starts, not from the moment its item is queued.
 */
import { setEnvironmentData } from 'node:worker_threads'
import type { RunOptions } from '../arguments.ts'
import { Clocks, clockBytes, monotonicMs } from './clocks.ts'
import { CliError } from '../errors.ts'
import { Cutoff, CUTOFF_BYTES } from './cutoff.ts'
import { type Job, JOB_KEY } from './job.ts'
import type { RecordStyle } from './records.ts'
import type { Problem } from './worker.ts'

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
  /** Most bytes one item's text can take. */
  readonly taskBytesMax: number
  /** How long a cancelled task may go on before its worker is ended, with all that has begun there. */
  readonly graceMs: number
}

/** Opens a zone; tests pass one of their own. */
export type OpenZone = (settings: ItemZoneSettings) => Promise<ItemZone>

/** Most calls in flight, however many workers with however many items each are asked for. */
export const CALLS_MAX = 16_384
const TASKS_PER_WORKER = 256
/**
 * An item that times out ends at once if it waits. Otherwise it blocks its thread, or shares the thread with
 * an item that does; ending the thread ends them all, so items that share it get more time.
 */
const GRACE_MS = { alone: 100, shared: 1000 }
const WORKER_URL = new URL('./worker.js', import.meta.url).href

export class Mapper {
  /** Most calls that make sense at once. */
  readonly runningMax: number
  readonly #zone: ItemZone
  readonly #mapItem: (text: string, item: number) => Promise<unknown>
  readonly #cutoff: Cutoff
  readonly #timeouts: Timeouts | undefined

  private constructor(zone: ItemZone, job: Job, runningMax: number, timeoutMs: number) {
    this.runningMax = runningMax
    this.#zone = zone
    this.#mapItem = zone.module(WORKER_URL)['mapItem']
    this.#cutoff = new Cutoff(job.cutoff)
    this.#timeouts = job.clocks === undefined ? undefined : new Timeouts(job.clocks, runningMax, timeoutMs)
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
    const perWorker = Math.max(TASKS_PER_WORKER, 2 * options.concurrency)
    const runningMax = Math.min(CALLS_MAX, perWorker * options.workers)
    const cutoff = new SharedArrayBuffer(CUTOFF_BYTES)
    const clocks = options.timeoutMs === 0 ? undefined : new SharedArrayBuffer(clockBytes(runningMax))
    const { module, exportName, exportNamed, items } = options
    const job: Job = { url, module, exportName, exportNamed, json: items === 'ndjson', style, cutoff, clocks }
    setEnvironmentData(JOB_KEY, job)
    const zone = await openZone({
      workers: options.workers,
      tasksPerWorkerMax: options.concurrency,
      tasksMax: runningMax + 1,
      // A UTF-16 unit takes at most three bytes; the rest of a task is a few numbers.
      taskBytesMax: Math.max(2 ** 26, 3 * options.lineCharsMax + 1024),
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

  /** Run one item: its line, or `undefined` when the cutoff was closed before it started. */
  call(text: string, item: number): Promise<string | undefined> {
    if (this.#timeouts !== undefined) return this.#timedCall(this.#timeouts, text, item)
    return this.#mapItem(text, item) as Promise<string | undefined>
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
    await this.#zone.close()
    setEnvironmentData(JOB_KEY, undefined)
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
