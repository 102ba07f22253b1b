/**
 * The middle of `corespun run`: items in, calls in flight, lines out, in order or as they come.
 *
 * Everything it holds is bounded: calls in flight, items whose line is not yet written, and the characters of
 * both. When a bound is reached, or the output asks to wait, it stops reading, so back-pressure goes from the
 * reader of the results to the writer of the items. It knows nothing of zones, streams or terminals.
 */
import { Flow, type Run } from '../../base/index.ts'
import type { Item } from './lines.ts'
import { failureLine, isFailure, unmarked, type RecordStyle } from './records.ts'

/**
 * Run the user's function on one item somewhere: a line, marked when the item failed, or `undefined` when the
 * gate was closed before the item started.
 */
export type Call = (text: string, item: number) => Promise<string | undefined>

/** Where lines go. */
export interface Sink {
  /** Take a line; never refuses. */
  write(line: string): void
  /** Whether to stop making lines until {@link Pump.resume} is called. */
  readonly blocked: boolean
}

/** What a pump does and how much it may hold. */
export interface PumpPlan {
  readonly call: Call
  readonly sink: Sink
  readonly style: RecordStyle
  readonly ordered: boolean
  readonly failFast: boolean
  /** Most calls in flight. */
  readonly runningMax: number
  /** Most items read and not yet written. */
  readonly heldMax: number
  /** Characters held by those items and their lines above which no further item is read. */
  readonly heldCharsMax: number
  /**
   * Called once when the pump stops early: close the gate and the input, so that nothing further starts.
   * `failed` is the item whose failure stops it, of which all earlier ones still run; 0 when it is no
   * failure.
   */
  readonly onStop: (failed: number) => void
}

/** How it went. */
export interface PumpSummary {
  /** Lines written. */
  readonly writtenCount: number
  /** How many of them are failures. */
  readonly failedCount: number
  /** The first item without a line; all before it have one. */
  readonly nextItem: number
}

/** One run over one source. */
export class Pump {
  readonly #plan: PumpPlan
  readonly #flow: Flow<Item, string | undefined>
  #writtenCount = 0
  #failedCount = 0
  #heldChars = 0
  #firstSkipped = Infinity
  #stopped = false
  #ended = false
  #wake: (() => void) | undefined

  /** @param plan Where items go, where lines go, and the bounds. */
  constructor(plan: PumpPlan) {
    this.#plan = plan
    const { ordered, runningMax, heldMax } = plan
    this.#flow = new Flow({
      run: (item, index) => this.#begin(item, index + 1),
      settled: (run) => this.#settled(run),
      ordered,
      runsMax: runningMax,
      // Refilled for each single one, items would cross threads one by one.
      refillsLate: true,
      aheadMax: heldMax,
      mayRead: () => this.#heldChars < plan.heldCharsMax && !plan.sink.blocked,
    })
  }

  /**
   * Map the items of all batches; resolves when every started item is settled, or at the first failure if so
   * asked.
   */
  async run(batches: AsyncIterable<readonly Item[]>): Promise<PumpSummary> {
    for await (const batch of batches) {
      for (const item of batch) {
        if (!this.#flow.room(1)) await this.#until(() => this.#stopped || this.#flow.room(1))
        if (this.#stopped) break
        this.#flow.begin(item, 1)
      }
      if (this.#stopped) break
    }
    await this.#until(() => this.#ended || this.#flow.isIdle)
    return this.summary()
  }

  /**
   * Read no further item and let none start that has not; the ones that run are finished.
   * @param failed The item whose failure is the reason: those before it are finished too, so that its line
   * can follow theirs. It need not have started: a line that is too long never does.
   */
  stop(failed = 0): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#plan.onStop(failed)
    this.resume()
  }

  /** Look again whether there is room: the sink took what it had. */
  resume(): void {
    this.#wake?.()
  }

  /** How it stands now. */
  summary(): PumpSummary {
    const writtenCount = this.#writtenCount
    const nextItem = this.#plan.ordered
      ? writtenCount + 1
      : Math.min(this.#firstSkipped, this.#flow.count + 1)
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
    const number = run.first + 1
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
