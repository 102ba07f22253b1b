/**
 * Items that are lent to takers of one connection, and looked for as long as there is a taker.
 *
 * A taker asks for items when there may be some: one was added or is free again here, a hint has come, or a
 * look is due. What ends or is extended is grouped. What is lent here is remembered until the server's own
 * time for it is over, which begins later than the one here.
 */
import { type Clock, type End, type Lease, type TakeOptions, PAGE_BYTES_MAX } from '../engine.ts'
import { failureOf } from './failures.ts'
import { Group } from './group.ts'
import { type Link, OPERATION_MS, type Row } from './link.ts'
import type { itemStatements } from './statements.ts'
import { addedMsOf, keyOf } from './text.ts'

/** How often it is looked, whatever hints come. */
export const LOOK_MS = 200
/** Most items that one statement lends: their bytes are in memory at once. */
const LEND_MAX = Math.floor((16 * PAGE_BYTES_MAX) / 2 ** 20)

interface Taker extends TakeOptions {
  readonly queue: string
  readonly lent: Map<number, { readonly attempt: number; untilMs: number }>
  on(lease: Lease): void
  mayHave: boolean
  isBusy: boolean
  isOver: boolean
}

interface Until {
  readonly seq: number
  readonly attempt: number
  /** `null`: it may be lent at once. */
  readonly ms: number | null
}

export class Taking {
  readonly #link: Link
  readonly #clock: Clock
  readonly #sql: ReturnType<typeof itemStatements>
  /** Others are to look at a queue. */
  readonly #hint: (queue: string) => void
  readonly #takers = new Set<Taker>()
  readonly #until: Group<Until, boolean>
  readonly #done: Group<number, void>
  #isLooking = false
  /** Ends the pause between two looks. */
  #wake: (() => void) | undefined
  #dueMs = Infinity
  #isClosed = false

  constructor(
    link: Link,
    clock: Clock,
    sql: ReturnType<typeof itemStatements>,
    hint: (queue: string) => void,
  ) {
    this.#link = link
    this.#clock = clock
    this.#sql = sql
    this.#hint = hint
    const failed = (cause: unknown): Error => failureOf(cause, 'ending or extending a lease', OPERATION_MS)
    this.#until = new Group<Until, boolean>({
      run: async (all) => {
        const columns = [
          all.map(({ seq }) => seq),
          all.map(({ attempt }) => attempt),
          all.map(({ ms }) => ms),
        ]
        const rows = await link.query(sql.until, columns)
        const changed = new Set(rows.map(({ seq }) => Number(seq)))
        return all.map(({ seq }) => changed.has(seq))
      },
      keyOf: ({ seq }) => String(seq),
      failed,
    })
    this.#done = new Group<number, void>({
      run: async (all) => {
        await link.query(sql.done, [all])
        return all.map(() => undefined)
      },
      failed,
    })
  }

  take(queue: string, on: (lease: Lease) => void, options: TakeOptions): End {
    const state = { mayHave: true, isBusy: false, isOver: false }
    const taker: Taker = { queue, on, lent: new Map(), ...state, ...options }
    this.#takers.add(taker)
    void this.#lend(taker)
    if (!this.#isLooking) void this.#look()
    return () => {
      taker.isOver = true
      this.#takers.delete(taker)
    }
  }

  /** Items of a queue, or of any, may wait. */
  ready(queue?: string): void {
    for (const taker of this.#takers)
      if (queue === undefined || taker.queue === queue) {
        taker.mayHave = true
        void this.#lend(taker)
      }
  }

  /** Who asks for items that are not there waits for the next hint or look. */
  async #lend(taker: Taker): Promise<void> {
    if (taker.isBusy) return
    taker.isBusy = true
    while (taker.mayHave && !taker.isOver && !this.#isClosed) {
      const capacity = Math.min(this.#capacityOf(taker), LEND_MAX)
      if (capacity <= 0) break
      taker.mayHave = false
      const nowMs = this.#clock.nowMs()
      try {
        const rows = await this.#link.query(this.#sql.lend, [taker.queue, capacity, taker.leaseMs], false)
        rows.sort(
          (one, other) =>
            Number(one['rank']) - Number(other['rank']) || Number(one['seq']) - Number(other['seq']),
        )
        taker.mayHave ||= rows.length === capacity
        for (const row of rows) this.#lent(taker, row, nowMs)
      } catch {
        // Nobody has asked for it here; the next look does it again. What was lent unseen is free in time.
        taker.mayHave = true
        break
      }
    }
    taker.isBusy = false
  }

  #capacityOf({ lent, leasesMax }: Taker): number {
    const nowMs = this.#clock.nowMs()
    for (const [seq, { untilMs }] of lent) if (untilMs <= nowMs) lent.delete(seq)
    return leasesMax - lent.size
  }

  #lent(taker: Taker, row: Row, askedMs: number): void {
    const [seq, attempt] = [Number(row['seq']), Number(row['attempts'])]
    if (taker.isOver || this.#isClosed) return void this.#again(taker, seq, attempt, 0)
    const clock = this.#clock
    const [ageMs, receivedMs] = [Number(row['age_ms']), clock.nowMs()]
    taker.lent.set(seq, { attempt, untilMs: askedMs + taker.leaseMs })
    taker.on({
      id: keyOf(row['id']),
      bytes: row['bytes'] as Uint8Array,
      addedMs: addedMsOf(row),
      attempt,
      ageMs: () => Math.max(0, ageMs + clock.nowMs() - receivedMs),
      extend: () => void this.#extend(taker, seq, attempt),
      done: () => this.#end(taker, seq),
      again: (delayMs) => void this.#again(taker, seq, attempt, delayMs),
    })
  }

  async #extend(taker: Taker, seq: number, attempt: number): Promise<void> {
    const askedMs = this.#clock.nowMs()
    const ms = taker.leaseMs
    // Without a confirmation it may be over: then somebody else has it, and the record decides.
    const isLent = await this.#until.ask({ seq, attempt, ms }).catch(() => undefined)
    const lent = taker.lent.get(seq)
    if (lent?.attempt !== attempt || isLent === undefined) return
    if (isLent) lent.untilMs = askedMs + ms
    else this.#free(taker, seq)
  }

  async #end(taker: Taker, seq: number): Promise<void> {
    await this.#done.ask(seq)
    this.#free(taker, seq)
  }

  async #again(taker: Taker, seq: number, attempt: number, delayMs: number): Promise<void> {
    const ms = delayMs > 0 ? delayMs : null
    const isLent = await this.#until.ask({ seq, attempt, ms }).catch(() => false)
    this.#free(taker, seq)
    if (!isLent) return
    if (ms === null) {
      this.ready(taker.queue)
      this.#hint(taker.queue)
    } else this.#dueIn(ms)
  }

  #free(taker: Taker, seq: number): void {
    taker.lent.delete(seq)
    void this.#lend(taker)
  }

  /** A pause is over in so many ms. */
  #dueIn(ms: number): void {
    const dueMs = this.#clock.nowMs() + ms
    if (dueMs >= this.#dueMs) return
    this.#dueMs = dueMs
    this.#wake?.()
  }

  /** Free what is due, and look at all queues. */
  async #look(): Promise<void> {
    this.#isLooking = true
    while (this.#takers.size > 0 && !this.#isClosed) {
      this.#dueMs = Infinity
      let isMore = false
      try {
        const [{ queues, count, due_ms: dueMs }] = await this.#link.query(this.#sql.promote)
        for (const queue of queues as string[]) this.#hint(queue)
        if (dueMs !== null) this.#dueMs = Math.min(this.#dueMs, this.#clock.nowMs() + Number(dueMs))
        isMore = count === 1000
      } catch {
        // The next look does it.
      }
      this.ready()
      while (!isMore && !this.#isClosed) {
        const dueMs = this.#dueMs
        await this.#pause(Math.max(1, Math.min(LOOK_MS, Math.ceil(dueMs - this.#clock.nowMs()))))
        if (this.#dueMs === dueMs) break
      }
    }
    this.#isLooking = false
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = this.#clock.after(ms, () => this.#wake?.())
      this.#wake = () => {
        this.#wake = undefined
        end()
        resolve()
      }
    })
  }

  /** What is lent here is lent again at once. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake?.()
    const all = [...this.#takers].flatMap(({ lent }) => [...lent])
    for (const { queue, lent } of this.#takers) if (lent.size > 0) this.#hint(queue)
    await Promise.allSettled(all.map(([seq, { attempt }]) => this.#until.ask({ seq, attempt, ms: null })))
    await Promise.all([this.#done.idle(), this.#until.idle()])
  }
}
