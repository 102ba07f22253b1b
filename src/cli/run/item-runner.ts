/**
 * Runs the items of a job and writes their lines, in the order of items or of completion.
 *
 * Calls in flight, items whose line is not yet written, and the characters of both are bounded. At a bound,
 * or while the output is blocked, it stops reading, so back-pressure reaches whoever writes the items. It
 * does not depend on zones, streams or terminals.
 */
import { Flow, type Run } from '../../base/index.ts'
import type { Item } from './lines.ts'
import { failureLine, isFailure, unmarked, type RecordStyle } from './records.ts'

/**
 * Calls the user's function with one item. Resolves to a line, which is marked if the item failed, or to
 * `undefined` if the cutoff was closed before the item started.
 */
export type Call = (text: string, item: number) => Promise<string | undefined>

/** Where lines go. */
export interface Sink {
  write(line: string): void
  /** Whether to stop making lines until {@link ItemRunner.resume} is called. */
  readonly blocked: boolean
}

export interface RunnerPlan {
  readonly call: Call
  readonly sink: Sink
  readonly style: RecordStyle
  /** The number of the first item, 1 or more. */
  readonly firstItem: number
  readonly ordered: boolean
  readonly failFast: boolean
  /** Most calls in flight. */
  readonly runningMax: number
  /** Most items read and not yet written. */
  readonly heldMax: number
  /** Characters held by those items and their lines above which no further item is read. */
  readonly heldCharsMax: number
  /**
   * Called once if the runner stops early: closes the cutoff and the input. `failed` is the item whose
   * failure is the reason, and all items before it still run; 0 if there was no failure.
   */
  readonly onStop: (failed: number) => void
}

export interface RunnerSummary {
  readonly writtenCount: number
  readonly failedCount: number
  /** The first item without a line. */
  readonly nextItem: number
}

export class ItemRunner {
  readonly #plan: RunnerPlan
  readonly #flow: Flow<Item, string | undefined>
  #writtenCount = 0
  #failedCount = 0
  #heldChars = 0
  #firstSkipped = Infinity
  #stopped = false
  #ended = false
  #wake: (() => void) | undefined

  constructor(plan: RunnerPlan) {
    this.#plan = plan
    const { ordered, firstItem, runningMax, heldMax } = plan
    this.#flow = new Flow({
      run: (item, index) => this.#begin(item, index + firstItem),
      settled: (run) => this.#settled(run),
      ordered,
      runsMax: runningMax,
      // Refilled for each single one, items would cross threads one by one.
      refillsLate: true,
      aheadMax: heldMax,
      mayRead: () => this.#heldChars < plan.heldCharsMax && !plan.sink.blocked,
    })
  }

  /** Resolves when every item that started has settled, or at the first failure with `failFast`. */
  async run(batches: AsyncIterable<readonly Item[]>): Promise<RunnerSummary> {
    for await (const batch of batches) {
      for (const item of batch) {
        if (!this.#flow.hasCapacity(1)) await this.#until(() => this.#stopped || this.#flow.hasCapacity(1))
        if (this.#stopped) break
        this.#flow.begin(item, 1)
      }
      if (this.#stopped) break
    }
    await this.#until(() => this.#ended || this.#flow.isIdle)
    return this.summary()
  }

  /**
   * Read and start no further item; those that run finish.
   * @param failed The item whose failure is the reason: the items before it run as well, so that its line can
   * follow theirs. It may never have started: a line that is too long does not.
   */
  stop(failed = 0): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#plan.onStop(failed)
    this.resume()
  }

  /** Continue: the sink is no longer blocked. */
  resume(): void {
    this.#wake?.()
  }

  summary(): RunnerSummary {
    const writtenCount = this.#writtenCount
    const { firstItem, ordered } = this.#plan
    const nextItem = ordered
      ? firstItem + writtenCount
      : Math.min(this.#firstSkipped, firstItem + this.#flow.count)
    return { writtenCount, failedCount: this.#failedCount, nextItem }
  }

  #until(reached: () => boolean): Promise<void> | undefined {
    if (reached()) return undefined
    return new Promise((resolve) => {
      this.#wake = () => {
        if (!reached()) return
        this.#wake = undefined
        resolve()
      }
    })
  }

  #begin(item: Item, number: number): Promise<string | undefined> | string {
    if (typeof item === 'string') {
      this.#heldChars += item.length
      return this.#plan.call(item, number)
    }
    const path = item.code === 'CLI_INPUT_UNREADABLE' ? (item.facts as { input: string }).input : ''
    return failureLine(item, number, path, this.#plan.style)
  }

  #settled(run: Run<Item, string | undefined>): void {
    const text = typeof run.of === 'string' ? run.of : ''
    const number = run.first + this.#plan.firstItem
    if (run.hasFailed) run.succeed(failureLine(run.value, number, text, this.#plan.style))
    const line = run.value
    this.#heldChars += (line?.length ?? 0) - text.length
    if (line === undefined) this.#firstSkipped = Math.min(number, this.#firstSkipped)
    else if (this.#plan.failFast && isFailure(line)) this.stop(number)
    for (let next = this.#flow.next(); next !== undefined; next = this.#flow.next()) {
      this.#flow.drop()
      this.#heldChars -= next.value?.length ?? 0
      if (next.value !== undefined) this.#write(next.value)
    }
    this.#wake?.()
  }

  #write(line: string): void {
    if (this.#ended) return
    this.#writtenCount++
    if (!isFailure(line)) {
      this.#plan.sink.write(line)
      return
    }
    this.#failedCount++
    this.#plan.sink.write(unmarked(line))
    if (this.#plan.failFast) this.#ended = true
  }
}
