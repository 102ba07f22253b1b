/**
 * The middle of `skein run`: items in, calls in flight, lines out, in order or as they come.
 *
 * Everything it holds is bounded: calls in flight, items whose line is not yet written, and the characters of
 * both. When a bound is reached, or the output asks to wait, it stops reading, so back-pressure goes from the
 * reader of the results to the writer of the items. It knows nothing of zones, streams or terminals.
 */
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
  /** Most items read and not yet written; a power of two. */
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
  /** Ordered lines that wait for an earlier one; item n lies at n modulo heldMax. */
  readonly #waiting: (string | undefined)[]
  #readCount = 0
  #runningCount = 0
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
    this.#waiting = new Array<string | undefined>(plan.ordered ? plan.heldMax : 0).fill(undefined)
  }

  /**
   * Map the items of all batches; resolves when every started item is settled, or at the first failure if so
   * asked.
   */
  async run(batches: AsyncIterable<readonly Item[]>): Promise<PumpSummary> {
    for await (const batch of batches) {
      for (const item of batch) {
        if (this.#full()) await this.#until(() => this.#stopped || this.#roomy())
        if (this.#stopped) break
        this.#start(item)
      }
      if (this.#stopped) break
    }
    await this.#until(() => this.#ended || this.#runningCount === 0)
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
    const nextItem = this.#plan.ordered ? writtenCount + 1 : Math.min(this.#firstSkipped, this.#readCount + 1)
    return { writtenCount, failedCount: this.#failedCount, nextItem }
  }

  #full(): boolean {
    const plan = this.#plan
    return (
      this.#runningCount >= plan.runningMax ||
      this.#readCount - this.#writtenCount >= plan.heldMax ||
      this.#heldChars >= plan.heldCharsMax ||
      plan.sink.blocked
    )
  }

  /** Room for several items: woken for each single one the pump would cross threads one by one. */
  #roomy(): boolean {
    const runningLow = this.#plan.runningMax - Math.max(1, this.#plan.runningMax >> 2)
    return this.#runningCount <= runningLow && !this.#full()
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

  #start(item: Item): void {
    const number = ++this.#readCount
    if (typeof item !== 'string') {
      const path = item.code === 'CLI_INPUT_UNREADABLE' ? (item.facts as { input: string }).input : ''
      this.#settle(number, 0, failureLine(item, number, path, this.#plan.style))
      return
    }
    this.#runningCount++
    this.#heldChars += item.length
    this.#plan.call(item, number).then(
      (line) => this.#finish(number, item.length, line),
      (thrown: unknown) => {
        this.#finish(number, item.length, failureLine(thrown, number, item, this.#plan.style))
      },
    )
  }

  #finish(number: number, itemChars: number, line: string | undefined): void {
    this.#runningCount--
    this.#settle(number, itemChars, line)
    this.#wake?.()
  }

  #settle(number: number, itemChars: number, line: string | undefined): void {
    this.#heldChars -= itemChars
    if (line === undefined) {
      if (number < this.#firstSkipped) this.#firstSkipped = number
      return
    }
    if (this.#plan.failFast && isFailure(line)) this.stop(number)
    if (!this.#plan.ordered) {
      this.#write(line)
      return
    }
    const mask = this.#plan.heldMax - 1
    this.#waiting[number & mask] = line
    this.#heldChars += line.length
    for (;;) {
      const slot = (this.#writtenCount + 1) & mask
      const next = this.#waiting[slot]
      if (next === undefined || this.#ended) return
      this.#waiting[slot] = undefined
      this.#heldChars -= next.length
      this.#write(next)
    }
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
