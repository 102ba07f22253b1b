/**
 * Runs the items of a job and writes their lines, in the order of items or of completion.
 *
 * Calls in flight, items whose line is not yet written, and the characters of both are bounded. At a bound,
 * or while the output is blocked, it stops reading, so back-pressure reaches whoever writes the items. It
 * does not depend on zones, streams or terminals.
 */
import { Flow, Part, type Run } from '../../base/index.ts'
import { type Item, KeptLine } from './lines.ts'
import { failureLine, isFailure, unmarked, type RecordStyle } from './records.ts'

/** An item that is to run, or the line that an earlier run has made of it. */
export type ReadyItem = Item | KeptLine

/** What became of the items of a call, from its first one on. */
export interface Lines {
  /** Their lines, joined by LF; those of failures are marked. */
  readonly text: string
  readonly lineCount: number
  readonly failedCount: number
  /** How many items are done: those with lines, and those that the cutoff kept from starting. */
  readonly itemCount: number
  /** The line of the item behind them, if it still runs. */
  readonly running?: Promise<Lines>
}

/**
 * Calls the user's function with one item or several, the first of which has that number. When it resolves,
 * at least one of them is done or `running`; the others are called again.
 */
export type Call = (texts: readonly string[], first: number) => Promise<Lines>

/** Where lines go. */
export interface Sink {
  /** @param lines `count` lines, joined by LF. */
  write(lines: string, count: number): void
  /** Whether to stop making lines until {@link ItemRunner.resume} is called. */
  readonly blocked: boolean
}

export interface RunnerPlan {
  readonly call: Call
  /** How many items the next call should have. */
  readonly sizeNow: () => number
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

/** Most UTF-16 units of the items of a call, of which each has one item at least. */
const CALL_CHARS_MAX = 65_536
/** Most lines of an earlier run that are written at once. */
const KEPT_LINES_MAX = 1024

export class ItemRunner {
  readonly #plan: RunnerPlan
  readonly #flow: Flow<readonly ReadyItem[], Lines>
  #writtenCount = 0
  #failedCount = 0
  #heldChars = 0
  #firstSkipped = Infinity
  #stopped = false
  #ended = false
  #wake: (() => void) | undefined

  constructor(plan: RunnerPlan) {
    this.#plan = plan
    const { sizeNow, ordered, firstItem, runningMax, heldMax } = plan
    this.#flow = new Flow({
      sizeNow,
      run: (items, index) => this.#begin(items, index + firstItem),
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
  async run(batches: AsyncIterable<readonly ReadyItem[]>): Promise<RunnerSummary> {
    for await (const batch of batches) {
      for (let at = 0; at < batch.length;) {
        const hasCapacity = (): boolean => this.#flow.hasCapacity(this.#countFrom(batch, at))
        // Again after each wait: what a call has left may have begun meanwhile.
        while (!this.#stopped && !hasCapacity()) await this.#until(() => this.#stopped || hasCapacity())
        if (this.#stopped) break
        const count = this.#countFrom(batch, at)
        // Once for each item, since those that a call has left are called again.
        for (let index = at; index < at + count; index++) this.#heldChars += charsOf(batch[index])
        this.#flow.begin(batch.slice(at, at + count), count)
        at += count
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

  /** How many items of a batch the next call has: texts or lines of an earlier run, in a row, or an error. */
  #countFrom(batch: readonly ReadyItem[], start: number): number {
    const isKept = batch[start] instanceof KeptLine
    const most = isKept ? KEPT_LINES_MAX : this.#plan.sizeNow()
    const end = Math.min(batch.length, start + Math.min(most, this.#plan.heldMax))
    let chars = charsOf(batch[start])
    let at = start + 1
    if (!isKept && typeof batch[start] !== 'string') return 1
    for (; at < end && (isKept ? batch[at] instanceof KeptLine : typeof batch[at] === 'string'); at++) {
      chars += charsOf(batch[at])
      if (chars > CALL_CHARS_MAX) break
    }
    return at - start
  }

  #begin(items: readonly ReadyItem[], number: number): Promise<Lines | Part<Lines>> | Lines {
    const [item] = items
    if (typeof item === 'string') {
      return this.#plan.call(items as readonly string[], number).then((lines) => {
        const { itemCount, running } = lines
        return itemCount < items.length ? new Part(lines, itemCount, running) : lines
      })
    }
    if (item instanceof KeptLine) {
      const { length } = items
      const text = (items as readonly KeptLine[]).map(({ line }) => line).join('\n')
      return { text, lineCount: length, failedCount: 0, itemCount: length }
    }
    const path = item.code === 'CLI_INPUT_UNREADABLE' ? (item.facts as { input: string }).input : ''
    return { text: failureLine(item, number, path, this.#plan.style), ...ONE_FAILURE }
  }

  #settled(run: Run<readonly ReadyItem[], Lines>): void {
    const items = run.of as readonly ReadyItem[]
    const number = run.first + this.#plan.firstItem
    if (run.hasFailed) run.succeed(this.#failures(run.value, items, number))
    const { text, lineCount, failedCount } = run.value as Lines
    this.#heldChars += text.length
    for (const item of items) this.#heldChars -= charsOf(item)
    if (lineCount < items.length) this.#firstSkipped = Math.min(number + lineCount, this.#firstSkipped)
    if (this.#plan.failFast && failedCount > 0) this.stop(number + text.split('\n').findIndex(isFailure))
    for (let next = this.#flow.next(); next !== undefined; next = this.#flow.next()) {
      this.#flow.drop()
      const lines = next.value as Lines
      this.#heldChars -= lines.text.length
      this.#write(lines)
    }
    this.#wake?.()
  }

  /** The call itself has failed, with all its items. */
  #failures(why: unknown, items: readonly ReadyItem[], number: number): Lines {
    const lines = items.map((item, at) => failureLine(why, number + at, String(item), this.#plan.style))
    const { length } = lines
    return { text: lines.join('\n'), lineCount: length, failedCount: length, itemCount: length }
  }

  #write({ text, lineCount, failedCount }: Lines): void {
    if (this.#ended || lineCount === 0) return
    if (failedCount > 0) {
      for (const line of text.split('\n')) this.#writeOne(line)
      return
    }
    this.#writtenCount += lineCount
    this.#plan.sink.write(text, lineCount)
  }

  #writeOne(line: string): void {
    if (this.#ended) return
    this.#writtenCount++
    if (!isFailure(line)) return this.#plan.sink.write(line, 1)
    this.#failedCount++
    this.#plan.sink.write(unmarked(line), 1)
    if (this.#plan.failFast) this.#ended = true
  }
}

const ONE_FAILURE = { lineCount: 1, failedCount: 1, itemCount: 1 }

function charsOf(item: ReadyItem): number {
  if (typeof item === 'string') return item.length
  return item instanceof KeptLine ? item.line.length : 0
}
