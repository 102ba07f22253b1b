/**
 * What the journal has is handed out in the order in which it was written, one entry in a turn of the event
 * loop, as it was when it was written: so the same fiber wins a race, and the code goes the same way.
 *
 * An entry that nobody asks for although the code has come to rest is of a fiber that was interrupted; it is
 * passed over. What has no entry begins when all that was recorded is handed out.
 *
 * A cancelled run is interrupted between the same two entries again, when the code has come to rest. What was
 * recorded behind that is of finalizers, and is not expected before.
 *
 * A `patched()` that was recorded and is not asked for was removed from the code, which is no difference.
 */
import { RunError, type RunFacts } from './errors.ts'
import type { Asked } from './context.ts'
import { nameIn, pathIn } from './keys.ts'
import type { JournalEntry } from './records.ts'

/** How many turns code that waits for something else than the run may take. */
const REST_TURNS = 16

type Final = JournalEntry & { readonly kind: 'done' | 'error' }

/** What happens to a run, each event in a turn of its own. */
export class Turns {
  readonly #queue: (() => void)[] = []
  #isPausing = false

  /** Resolves when it is the next one's turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push(resolve)
      if (!this.#isPausing) this.#serve()
    })
  }

  #serve(): void {
    const resolve = this.#queue.shift()
    this.#isPausing = resolve !== undefined
    if (resolve === undefined) return
    resolve()
    setImmediate(() => this.#serve())
  }
}

export class Replay {
  readonly #run: RunFacts
  /** `undefined`: the run was cancelled. */
  readonly #order: (Final | undefined)[] = []
  /** Each with its number in the order. */
  readonly #finals = new Map<string, number>()
  readonly #others = new Map<string, JournalEntry[]>()
  /** By path: the keys that were not asked for again. */
  readonly #left = new Map<string, Set<string>>()
  readonly #asked = new Map<string, () => void>()
  /** The keys of what was recorded behind the cancellation, until that is handed out. */
  #behind: string[] | undefined
  /** What was asked for until then. */
  readonly #before = new Set<string>()
  readonly #cancelled: () => void
  #over: (() => void) | undefined
  #at = 0
  #rested = 0
  #isClosed = false

  /** Resolves when what has no entry may begin. */
  readonly over: Promise<void>

  /** @param cancelled Called when it was cancelled, in its turn. */
  constructor(run: RunFacts, entries: readonly JournalEntry[], cancelled: () => void) {
    this.#run = run
    this.#cancelled = cancelled
    this.over = new Promise((resolve) => (this.#over = resolve))
    for (const entry of entries) this.#add(entry)
  }

  #add(entry: JournalEntry): void {
    const { kind, key } = entry
    if (kind === 'held' || kind === 'still') return
    if (kind === 'cancel') {
      this.#order.push(undefined)
      this.#behind = []
      return
    }
    if (kind === 'done' || kind === 'error') {
      const final = entry as Final
      if (this.#finals.has(key)) return
      this.#finals.set(key, this.#order.push(final) - 1)
    } else {
      const others = this.#others.get(key)
      if (others === undefined) this.#others.set(key, [entry])
      else others.push(entry)
    }
    if (this.#behind === undefined) this.#expect(key)
    else this.#behind.push(key)
  }

  #expect(key: string): void {
    const path = pathIn(key)
    const left = this.#left.get(path)
    if (left === undefined) this.#left.set(path, new Set([key]))
    else left.add(key)
  }

  /** Whether it was cancelled. */
  get isCancelled(): boolean {
    return this.#order.includes(undefined)
  }

  /** The signals that were received. */
  get signals(): Set<string> {
    return new Set(this.#order.flatMap((final) => final?.signal ?? []))
  }

  /** Begin to hand out, when the code has begun. */
  begin(): void {
    setImmediate(() => this.#advance())
  }

  close(): void {
    this.#isClosed = true
  }

  /**
   * How what is asked for has ended, in its turn; `undefined`: it has not.
   * @throws {RunError} `RUN_DIVERGED` when it has no entry, and others of its fiber were not asked for.
   */
  ask({ key, path, name }: Asked): Promise<Final> | undefined {
    this.#rested = 0
    if (this.#behind !== undefined) this.#before.add(key)
    const left = this.#left.get(path)
    if (left?.delete(key) !== true && this.#isExpected(path)) throw this.#diverged(path, name)
    const index = this.#finals.get(key)
    if (index === undefined) return undefined
    const final = this.#order[index] as Final
    // It was passed over, since the code came late.
    if (index < this.#at) return Promise.resolve(final)
    return new Promise((resolve) => this.#asked.set(key, () => resolve(final)))
  }

  /** @throws {RunError} `RUN_DIVERGED` when the fiber of the run has ended before what was recorded of it. */
  checkEnd(): void {
    if (this.#isExpected('')) throw this.#diverged('', 'its end')
  }

  /** Whether others of the fiber are to be asked for; a `patched()` that is not any more was removed. */
  #isExpected(path: string): boolean {
    const left = this.#left.get(path)
    if (left === undefined) return false
    for (const key of left) if (!nameIn(key).startsWith('patched(')) return true
    left.clear()
    return false
  }

  #diverged(path: string, asked: string): RunError {
    const left = [...(this.#left.get(path) as Set<string>)].map(nameIn)
    const recorded = left.find((name) => !name.startsWith('patched(')) as string
    return new RunError('RUN_DIVERGED', { ...this.#run, asked, recorded })
  }

  /** Whether it has no entry, and others of its fiber do that were not asked for. */
  isPast({ key, path }: Asked): boolean {
    const left = this.#left.get(path)
    return left !== undefined && left.size > 0 && !left.has(key) && !this.#finals.has(key)
  }

  /** Entries of attempts that have failed, in their order. */
  failures(key: string): readonly JournalEntry[] {
    return (this.#others.get(key) ?? []).filter(({ kind }) => kind === 'failed')
  }

  /** Whether a pause or a wait has begun. */
  hasBegun(key: string): boolean {
    return this.#others.get(key)?.some(({ kind }) => kind === 'begun') === true
  }

  /** When a pause or a wait ends that had begun. */
  dueMs(key: string): number | undefined {
    return this.#others.get(key)?.find(({ kind }) => kind === 'begun')?.dueMs
  }

  /** Whether the fiber was interrupted while it waited for it. */
  wasLeft(key: string): boolean {
    return this.#others.get(key)?.some(({ kind }) => kind === 'left') === true
  }

  readonly #advance = (): void => {
    if (this.#isClosed) return
    if (this.#at === this.#order.length) {
      this.#over?.()
      return
    }
    const final = this.#order[this.#at]
    const resolve = final && this.#asked.get(final.key)
    if (resolve !== undefined || this.#rested++ >= REST_TURNS) {
      this.#at++
      this.#rested = 0
      if (final === undefined) this.#cancel()
      else this.#asked.delete(final.key)
      resolve?.()
    }
    setImmediate(this.#advance)
  }

  #cancel(): void {
    const behind = this.#behind ?? []
    this.#behind = undefined
    for (const key of behind) if (!this.#before.has(key)) this.#expect(key)
    this.#before.clear()
    this.#cancelled()
  }
}
