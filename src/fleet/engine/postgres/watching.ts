/**
 * Changes of values, for the watches of one connection: read behind the revision that each has had.
 *
 * It is looked when something was written here, when a hint comes, and at the least from time to time. A
 * store's revisions are committed in their order, so what is behind the last one that was read is all.
 */
import type { Clock, End, Entry, Watching as Options } from '../engine.ts'
import { FleetError } from '../../errors.ts'
import { Group } from './group.ts'
import { type Link, OPERATION_MS } from './link.ts'
import { closedError, failureOf } from './failures.ts'
import { MARK_MS, type valueStatements } from './statements.ts'
import { LOOK_MS } from './taking.ts'
import { keyOf, textOf } from './text.ts'

/** Most changes of a watch that are read at once. */
const CHANGES_MAX = 500
/** The revision of a watch that has had nothing yet, and is to have what there is of its key. */
const ALL = -1

interface Watch {
  readonly id: number
  readonly store: string
  readonly key: string | undefined
  on(entry: Entry): void
  over(why: FleetError): void
  after: number
  isOver: boolean
}

export class Watching {
  readonly #link: Link
  readonly #clock: Clock
  readonly #sql: ReturnType<typeof valueStatements>
  readonly #watches = new Map<number, Watch>()
  /** Stores that may have changed; `undefined`: any may have. */
  #changed: Set<string> | undefined = new Set()
  readonly #lasts: Group<string, number>
  #count = 0
  #isLooking = false
  #wake: (() => void) | undefined
  #lookedMs = 0
  #isClosed = false

  constructor(link: Link, clock: Clock, sql: ReturnType<typeof valueStatements>) {
    this.#link = link
    this.#clock = clock
    this.#sql = sql
    this.#lasts = new Group<string, number>({
      run: async (stores) => {
        const all = [...new Set(stores)]
        const rows = await link.query(sql.lasts, [all])
        const found = new Map(rows.map(({ at, last }) => [all[Number(at) - 1], Number(last)]))
        return stores.map((store) => found.get(store) ?? 0)
      },
      failed: (cause) => failureOf(cause, 'reading the last revision', OPERATION_MS),
    })
  }

  /** The last revision of a store. */
  last(store: string): Promise<number> {
    return this.#lasts.ask(store)
  }

  async watch(store: string, on: (entry: Entry) => void, options: Options = {}): Promise<End> {
    const { from, key, over = () => {} } = options
    const after = key === undefined ? 0 : ALL
    const watch: Watch = { id: ++this.#count, store, key, on, over, after, isOver: false }
    if (from === 'now') watch.after = await this.last(store)
    else if (key === undefined) await this.#begin(watch, await this.last(store))
    if (this.#isClosed) throw closedError()
    if (this.#watches.size === 0) this.#lookedMs = this.#clock.nowMs()
    this.#watches.set(watch.id, watch)
    this.#changed?.add(store)
    if (!this.#isLooking) void this.#look()
    else if (watch.after === ALL) this.#wake?.()
    return () => {
      watch.isOver = true
      this.#watches.delete(watch.id)
    }
  }

  /** All values that there are, up to a revision at least. */
  async #begin(watch: Watch, last: number): Promise<void> {
    while (watch.after < last) {
      const asked = [[watch.id], [watch.store], [watch.after], CHANGES_MAX]
      let rows
      try {
        rows = await this.#link.query(this.#sql.changes, asked)
      } catch (error) {
        throw failureOf(error, `reading all of ${watch.store}`, OPERATION_MS)
      }
      for (const { key, revision, bytes } of rows) {
        watch.after = Number(revision)
        if (bytes !== null) watch.on({ key: keyOf(key), revision: watch.after, bytes: bytes as Uint8Array })
      }
      if (rows.length < CHANGES_MAX) break
    }
  }

  /** Values of a store, or of any, may have changed. */
  changed(store?: string): void {
    if (store === undefined) this.#changed = undefined
    else this.#changed?.add(store)
    if (store === undefined || [...this.#watches.values()].some((watch) => watch.store === store))
      this.#wake?.()
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    while (this.#watches.size > 0 && !this.#isClosed) {
      const changed = this.#changed
      this.#changed = new Set()
      try {
        await this.#read(changed)
      } catch {
        // Nobody has asked for it here; the next look reads it.
        this.#changed = undefined
      }
      if (this.#changed?.size === 0) {
        const isLate = await this.#pause(LOOK_MS)
        if (isLate) this.#changed = undefined
      } else if (this.#changed === undefined) await this.#pause(LOOK_MS)
    }
    this.#isLooking = false
  }

  /** @param stores Those that may have changed. Absent: all. */
  async #read(stores: ReadonlySet<string> | undefined): Promise<void> {
    const nowMs = this.#clock.nowMs()
    const isAll = stores === undefined
    const all = [...this.#watches.values()].filter(({ store }) => isAll || stores.has(store))
    const [ofKeys, ofStores] = [
      all.filter(({ key }) => key !== undefined),
      all.filter(({ key }) => key === undefined),
    ]
    const asked = (some: readonly Watch[]) => [
      some.map(({ id }) => id),
      some.map(({ store }) => store),
      some.map(({ after }) => after),
    ]
    if (ofKeys.length > 0) {
      const keys = ofKeys.map(({ key }) => textOf(key!))
      this.#report(await this.#link.query(this.#sql.changesOf, [...asked(ofKeys), keys]))
    }
    if (ofStores.length > 0) {
      const rows = await this.#link.query(this.#sql.changes, [...asked(ofStores), CHANGES_MAX])
      this.#report(rows)
      // There may be more of one of them.
      if (rows.length >= CHANGES_MAX) for (const { store } of ofStores) this.#changed?.add(store)
    }
    if (!isAll) return
    // Deletions may be forgotten that these have not received.
    if (nowMs - this.#lookedMs > MARK_MS / 2)
      this.#end(
        new FleetError('FLEET_CLOSED', { reason: 'changes were read too late to have all deletions' }),
      )
    this.#lookedMs = nowMs
  }

  #report(rows: readonly Record<string, unknown>[]): void {
    for (const { id, key, revision, bytes } of rows) {
      const watch = this.#watches.get(Number(id))
      if (watch === undefined || watch.isOver || this.#isClosed) continue
      watch.after = Number(revision)
      watch.on({ key: keyOf(key), revision: watch.after, bytes: (bytes as Uint8Array | null) ?? undefined })
    }
  }

  /** @returns Whether the time is over. */
  #pause(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const over = (isLate: boolean): void => {
        this.#wake = undefined
        end()
        resolve(isLate)
      }
      const end = this.#clock.after(ms, () => over(true))
      this.#wake = () => over(false)
    })
  }

  #end(why: FleetError): void {
    for (const watch of [...this.#watches.values()]) {
      this.#watches.delete(watch.id)
      watch.isOver = true
      watch.over(why)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#wake?.()
    this.#end(closedError())
  }
}
