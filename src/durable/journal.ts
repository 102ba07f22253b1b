/**
 * The journal of a run: entries are appended, each record under the next number, which must be free.
 *
 * One write is under way at a time, and what is appended meanwhile is in the next record, so the journal has
 * no gaps, and steps that end at once share a write. That the number must be free is the fence: who has
 * lost the run finds a record of its next holder there, and can write nothing any more. A journal that the
 * head does not name any more is deleted, so who has not written for a while looks behind its write whether
 * the head names it: otherwise what it has written does not count.
 */
import { type Engine, type Entry, type KeyValue, certainly, errorFrame, isDone } from '../fleet/internal.ts'
import { RunError, type RunFacts, readable } from './errors.ts'
import { type JournalEntry, RECORD_BYTES, readRecord, writeRecord } from './records.ts'
import { type Kept, bytesIn } from './values.ts'

/** What an entry takes beside its value and its names. */
const ENTRY_BYTES = 256
/** A character of a name in JSON. */
const NAME_BYTES = 6
const READS_MIN = 4
const READS_MAX = 128
/** So many records are written at once to be deleted later. */
const EXPIRED = 8

interface Waiting {
  readonly entry: JournalEntry
  readonly bytes: number
  resolve(): void
  reject(error: unknown): void
}

interface JournalOf {
  readonly engine: Pick<Engine, 'clock' | 'messageBytesMax'>
  readonly values: KeyValue
  /** The name of the journal: that of the head. */
  readonly id: string
  readonly run: RunFacts
  /** Since when this process has the run, by the engine's clock. */
  readonly sinceMs: number
  /** Whether what is not confirmed is repeated. */
  readonly goesOn: () => boolean
  /** Called once, when nothing can be written any more. */
  readonly lost: (why: unknown) => void
  /** For so long behind a write nobody else can have taken the run. Default: for good. */
  readonly sureMs?: number
  /** Whether the head still names this journal. */
  readonly isNamed?: () => Promise<boolean>
}

export class Journal {
  readonly #of: JournalOf
  /** Who writes: one that is this one's own although its write was not confirmed has it. */
  readonly #writer = crypto.randomUUID()
  readonly #bytesMax: number
  readonly #waiting: Waiting[] = []
  #heldMs: number
  #next = 0
  #isWriting = false
  #writing = Promise.resolve()
  #failure: { readonly error: unknown } | undefined

  constructor(of: JournalOf) {
    this.#of = of
    this.#heldMs = of.sinceMs
    this.#bytesMax = of.engine.messageBytesMax - RECORD_BYTES
  }

  /** When this process certainly had the run, by the engine's clock: it has written behind that. */
  get heldMs(): number {
    return this.#heldMs
  }

  /** How many records were read or written. */
  get count(): number {
    return this.#next
  }

  /** Resolves when nothing is being written. */
  get whenWritten(): Promise<void> {
    return this.#writing
  }

  /** Whether everything that was appended is written. */
  get isWritten(): boolean {
    return !this.#isWriting
  }

  /** All entries. Later ones are appended behind them. @throws {RunError} `RUN_UNREADABLE`. */
  async read(): Promise<JournalEntry[]> {
    const entries: JournalEntry[] = []
    for (let reads = READS_MIN; ; reads = Math.min(2 * reads, READS_MAX))
      for (const value of await this.#found(this.#next, reads)) {
        if (value?.bytes === undefined) return entries
        const { bytes, key } = value
        entries.push(...readable(this.#of.run, key, () => readRecord(bytes).entries))
        this.#next++
      }
  }

  #found(from: number, count: number): Promise<readonly (Entry | undefined)[]> {
    const { engine, values, id, goesOn } = this.#of
    const keys = Array.from({ length: count }, (_, index) => `${id}.${from + index}`)
    return Promise.all(keys.map((key) => certainly(engine, () => values.get(key), goesOn)))
  }

  /**
   * All records are deleted after that time. The last ones are written first, and some at once: so what dies
   * on the way, and is repeated when some have been deleted, leaves no gap that is longer.
   */
  async expire(ttlMs: number): Promise<void> {
    const { engine, values, goesOn } = this.#of
    const parts: Entry[][] = []
    for (let from = 0; ; from += EXPIRED) {
      const found = await this.#found(from, EXPIRED)
      const part = found.filter((entry): entry is Entry => entry?.bytes !== undefined)
      if (part.length === 0) break
      parts.push(part)
    }
    const write = ({ key, bytes, revision }: Entry): Promise<boolean> =>
      certainly(engine, () => isDone(values.put(key, bytes as Uint8Array, { revision, ttlMs })), goesOn)
    for (const part of parts.toReversed()) await Promise.all(part.map(write))
  }

  /** Deletes all records, from the end: what dies on the way leaves what a second call finds. */
  async remove(): Promise<void> {
    const { engine, values, goesOn } = this.#of
    await this.read()
    while (this.#next > 0) {
      const key = `${this.#of.id}.${this.#next - 1}`
      await certainly(engine, () => values.delete(key), goesOn)
      this.#next--
    }
  }

  /** @throws {RunError} `RUN_TOO_LARGE`. */
  checkSize(what: string, kept: Kept): void {
    const bytes = bytesIn(kept)
    if (bytes > this.#bytesMax) throw new RunError('RUN_TOO_LARGE', { what, bytes, bytesMax: this.#bytesMax })
  }

  /** The frame of an error; of one that is too large, that of the refusal. */
  errorFrame(error: unknown, what: string): Uint8Array {
    const frame = errorFrame(error)
    try {
      this.checkSize(what, frame)
      return frame
    } catch (tooLarge) {
      return errorFrame(tooLarge)
    }
  }

  /** Resolves when the entry is kept. Rejects when it cannot be, as no later one can. */
  append(entry: JournalEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure.error)
      const { key, sent = '', frame = '' } = entry
      const bytes = ENTRY_BYTES + NAME_BYTES * (key.length + sent.length) + bytesIn(frame)
      this.#waiting.push({ entry, bytes, resolve, reject })
      if (!this.#isWriting) this.#writing = this.#write()
    })
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    // Those that end in this turn are in one record.
    await undefined
    while (this.#waiting.length > 0) {
      const batch = this.#batch()
      try {
        await this.#put(batch.map(({ entry }) => entry))
      } catch (error) {
        this.#failure = { error }
        this.#isWriting = false
        for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(error)
        return this.#of.lost(error)
      }
      if (this.#waiting.length === 0) this.#isWriting = false
      for (const { resolve } of batch) resolve()
      if (!this.#isWriting) return
    }
  }

  #batch(): Waiting[] {
    let bytes = 0
    const end = this.#waiting.findIndex((waiting, index) => {
      bytes += waiting.bytes
      return index > 0 && bytes > this.#bytesMax
    })
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
  }

  async #put(entries: readonly JournalEntry[]): Promise<void> {
    const { engine, values, id, goesOn, run } = this.#of
    const key = `${id}.${this.#next}`
    const bytes = writeRecord(this.#writer, entries)
    const sentMs = engine.clock.nowMs()
    await certainly(
      engine,
      async () => {
        if (await isDone(values.put(key, bytes, { revision: 0 }))) return
        const found = await values.get(key)
        // A write that was not confirmed, and was done.
        if (found?.bytes !== undefined && readRecord(found.bytes).writer === this.#writer) return
        throw new RunError('RUN_LEFT', { ...run, reason: 'another process has taken it' })
      },
      goesOn,
    )
    const isSure = engine.clock.nowMs() - this.#heldMs <= (this.#of.sureMs ?? Infinity)
    if (!isSure && (await this.#of.isNamed?.()) === false) {
      await certainly(engine, () => values.delete(key), goesOn)
      throw new RunError('RUN_LEFT', { ...run, reason: 'it was run again' })
    }
    this.#next++
    this.#heldMs = sentMs
  }
}
