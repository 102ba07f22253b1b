/**
 * What each operation of an engine does to the tables of a file.
 *
 * All of it is synchronous, within a transaction of the caller, without threads and messages. Time
 * is passed in. What is refused is thrown as a {@link Refusal} before anything is changed.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { FleetCodes } from '../../errors.ts'
import type { Entry, Found, Page, Paging, QueueState, Rank, Waiting } from '../engine.ts'

/** What becomes a `FleetError` of that code in the thread that has asked. */
export class Refusal<Code extends keyof FleetCodes = keyof FleetCodes> {
  readonly code: Code
  readonly facts: FleetCodes[Code]

  constructor(code: Code, facts: FleetCodes[Code]) {
    this.code = code
    this.facts = facts
  }
}

/** An item that is lent. */
export interface Lent extends Waiting {
  readonly seq: number
  readonly id: string
  readonly attempt: number
  readonly value: Entry | null | undefined
}

/** Which part, and after how many bytes it ends. */
export interface BoundPaging extends Paging {
  readonly bytesMax: number
}

/** A write of a value, without its bytes. */
export interface Change {
  readonly revision: number
  readonly store: string
  readonly key: string
}

/** How long it is remembered that a value was deleted: who watches, and looks less often, begins anew. */
export const MARK_MS = 3_600_000
/** Most values that have ended and are removed at once. */
const SWEEP_MAX = 500
/** Most changes that are read at once. */
const CHANGES_MAX = 1000

type Row = Record<string, SQLInputValue>
/** An item that was lent, and the revision of its value where there is one. */
interface LentRow {
  readonly seq: number
  readonly id: string
  readonly rank: number
  readonly added_ms: number
  readonly attempts: number
  readonly bytes: Uint8Array
  readonly revision?: number | null
}

const LIVE = 'bytes IS NOT NULL AND (ends_ms = 0 OR ends_ms > ?)'
/** What each job needs: a text that is put together anew is hashed anew. */
const GET = `SELECT revision, bytes FROM corespun_values WHERE store = ? AND key = ? AND ${LIVE}`
const ADD = 'INSERT OR IGNORE INTO corespun_items (queue, id, rank, added_ms, bytes) VALUES (?, ?, ?, ?, ?)'
/**
 * A value that the plan of a statement may depend on is `+?`. Behind `?` alone SQLite compiles the statement
 * anew each time, which takes longer than it does.
 */
const LEND = `UPDATE corespun_items SET attempts = attempts + 1, until_ms = ? WHERE seq IN (
    SELECT seq FROM corespun_items WHERE queue = +? AND until_ms = 0 ORDER BY rank, seq LIMIT +?
  ) RETURNING seq, id, rank, added_ms, attempts, bytes`
const LEND_WITH_VALUES = `${LEND}, (
    SELECT revision FROM corespun_values WHERE store = +? AND key = id AND ${LIVE.replace('?', '+?')}
  ) AS revision`
const VALUE = 'INTO corespun_values (store, key, ends_ms, bytes) VALUES (?, ?, ?, ?)'
const NEW_VALUE = `INSERT OR IGNORE ${VALUE}`
const CHANGES =
  'SELECT revision, store, key FROM corespun_values WHERE revision > ? ORDER BY revision LIMIT +?'

export class Tables {
  readonly #db: DatabaseSync
  readonly #nowMs: () => number
  readonly #statements = new Map<string, StatementSync>()
  /** Of each store that this transaction writes: its last revision, and how many values more it has. */
  readonly #written = new Map<string, { last: number; more: number }>()
  /** The last revision, once this transaction has it. */
  #last: number | undefined

  constructor(db: DatabaseSync, nowMs: () => number) {
    this.#db = db
    this.#nowMs = nowMs
  }

  #sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) this.#statements.set(text, (statement = this.#db.prepare(text)))
    return statement
  }

  #get(text: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#sql(text).get(...values)
  }

  #run(text: string, ...values: SQLInputValue[]): number {
    return Number(this.#sql(text).run(...values).changes)
  }

  /** A transaction begins: whatever another has written was kept, or taken back. */
  begin(): void {
    this.#written.clear()
    this.#last = undefined
  }

  /** What stores have is counted once in a transaction, at its end, or before it is read. */
  settle(): void {
    const count = 'UPDATE corespun_stores SET last = ?, count = count + ? WHERE name = ?'
    for (const [store, { last, more }] of this.#written) this.#run(count, last, more, store)
    this.#written.clear()
  }

  openQueue(name: string): void {
    this.#run('INSERT OR IGNORE INTO corespun_queues VALUES (?)', name)
  }

  /**
   * `undefined`: there is a value of that id.
   * @param insteadMs When the item was added that it replaces.
   * @param unless The store that may have no value of its id.
   */
  add(
    queue: string,
    id: string,
    bytes: Uint8Array,
    rank: Rank,
    insteadMs?: number,
    unless?: string,
  ): boolean | undefined {
    if (unless !== undefined && this.get(unless, id) !== undefined) return undefined
    if (insteadMs !== undefined && !this.remove(queue, id, insteadMs)) return false
    return this.#run(ADD, queue, id, rank, this.#nowMs(), bytes) === 1
  }

  find(queue: string, id: string): Waiting | undefined {
    const row = this.#get(
      'SELECT seq, added_ms, bytes FROM corespun_items WHERE queue = ? AND id = ?',
      queue,
      id,
    )
    return row && { bytes: row['bytes'] as Uint8Array, addedMs: addedMsOf(row) }
  }

  /** By ids, through their index; of items that somebody has had, which are few, through one of their own. */
  pageItems(queue: string, paging: BoundPaging, isLent: boolean): Page<Found> {
    const source = isLent
      ? 'corespun_items INDEXED BY corespun_items_had WHERE attempts > 0 AND'
      : 'corespun_items WHERE'
    const all = `SELECT id, seq, added_ms, bytes FROM ${source} queue = ? AND id > ? ORDER BY id`
    const rows = this.#sql(all).iterate(queue, paging.after ?? '') as IterableIterator<Row>
    return pageOf(rows, paging, (row) => ({
      id: row['id'] as string,
      bytes: row['bytes'] as Uint8Array,
      addedMs: addedMsOf(row),
    }))
  }

  /** @returns False: it is not the one that was added then. */
  remove(queue: string, id: string, addedMs?: number): boolean {
    if (addedMs !== undefined && this.find(queue, id)?.addedMs !== addedMs) return false
    this.#run('DELETE FROM corespun_items WHERE queue = ? AND id = ?', queue, id)
    return true
  }

  count(queue: string): number {
    return Number(this.#get('SELECT count(*) AS count FROM corespun_items WHERE queue = ?', queue)?.['count'])
  }

  done(seq: number): void {
    this.#run('DELETE FROM corespun_items WHERE seq = ?', seq)
  }

  /** Until when a lending lasts, or the pause behind it; 0: it ends. False: it is over already. */
  lendUntil(seq: number, attempt: number, untilMs: number): boolean {
    const changed = 'UPDATE corespun_items SET until_ms = ? WHERE seq = ? AND attempts = ? AND until_ms > 0'
    return this.#run(changed, Math.ceil(untilMs), seq, attempt) === 1
  }

  /**
   * The items of a queue that are next, which may be fewer than `count`.
   * @param values The store that has their values.
   */
  lend(queue: string, count: number, untilMs: number, values?: string): Lent[] {
    const asked = [Math.ceil(untilMs), queue, count]
    const lent = (values === undefined
      ? this.#sql(LEND).all(...asked)
      : this.#sql(LEND_WITH_VALUES).all(...asked, values, this.#nowMs())) as unknown as LentRow[]
    lent.sort((one, other) => one.rank - other.rank || one.seq - other.seq)
    return lent.map(({ seq, id, added_ms, attempts, bytes, revision }) => {
      const found = revision == null ? null : this.written({ revision, store: values!, key: id })
      const value = values === undefined ? undefined : found
      return { seq, id, bytes, attempt: attempts, addedMs: addedMsOf({ seq, added_ms }), value }
    })
  }

  hasReady(queue: string): boolean {
    const ready = 'SELECT 1 FROM corespun_items WHERE queue = ? AND until_ms = 0 LIMIT 1'
    return this.#get(ready, queue) !== undefined
  }

  /** Items whose lending or pause is over may be lent. */
  promote(): void {
    this.#run('UPDATE corespun_items SET until_ms = 0 WHERE until_ms > 0 AND until_ms <= ?', this.#nowMs())
  }

  /** When the next lending or pause is over. */
  dueMs(): number {
    const row = this.#get('SELECT min(until_ms) AS due FROM corespun_items WHERE until_ms > 0')
    return Number(row?.['due'] ?? Infinity)
  }

  /** Counts in indexes alone: rows have the bytes of all jobs that wait. */
  queues(): QueueState[] {
    const nowMs = this.#nowMs()
    const had = 'corespun_items INDEXED BY corespun_items_had WHERE attempts > 0 AND queue = ?'
    const ready = 'corespun_items INDEXED BY corespun_items_ready WHERE until_ms = 0 AND queue = ?'
    const first = `SELECT added_ms FROM ${ready} AND rank = ? AND attempts = 0 ORDER BY seq LIMIT 1`
    const names = this.#sql('SELECT name FROM corespun_queues').all() as { name: string }[]
    return names.map(({ name }) => {
      const lent = Number(this.#get(`SELECT count(*) AS count FROM ${had}`, name)?.['count'])
      const firsts = [0, 1, 2].map((rank) => Number(this.#get(first, name, rank)?.['added_ms'] ?? nowMs))
      const waitedMs = Math.max(0, nowMs - Math.min(...firsts))
      return { name, waiting: this.count(name) - lent, lent, waitedMs }
    })
  }

  /** @throws {Refusal} `FLEET_MISMATCH`. */
  openStore(name: string, ttlMs: number): void {
    const found = this.#get('SELECT ttl_ms FROM corespun_stores WHERE name = ?', name)?.['ttl_ms'] as
      | number
      | undefined
    if (found === undefined)
      this.#run('INSERT INTO corespun_stores (name, ttl_ms) VALUES (?, ?)', name, ttlMs)
    else if (found !== ttlMs)
      throw new Refusal('FLEET_MISMATCH', { of: name, option: 'ttlMs', asked: ttlMs, found })
  }

  get(store: string, key: string): Entry | undefined {
    const row = this.#get(GET, store, key, this.#nowMs()) as
      | { revision: number; bytes: Uint8Array }
      | undefined
    return row && { key, bytes: row.bytes, revision: row.revision }
  }

  /** A value that is larger is not read. @throws {Refusal} `FLEET_TOO_LARGE`. */
  getObject(store: string, key: string, bytesMax: number): Uint8Array | undefined {
    const size = `SELECT length(bytes) AS bytes FROM corespun_values WHERE store = ? AND key = ? AND ${LIVE}`
    const bytes = Number(this.#get(size, store, key, this.#nowMs())?.['bytes'] ?? 0)
    if (bytes > bytesMax) throw new Refusal('FLEET_TOO_LARGE', { bytes, valueBytesMax: bytesMax })
    return this.get(store, key)?.bytes
  }

  /** Without `bytes` the value is deleted. @throws {Refusal} `FLEET_CONFLICT`. */
  put(
    store: string,
    key: string,
    bytes: Uint8Array | undefined,
    revision: number | undefined,
    ttlMs: number,
  ): number {
    const nowMs = this.#nowMs()
    const endsMs = bytes === undefined ? nowMs + MARK_MS : ttlMs === 0 ? 0 : Math.ceil(nowMs + ttlMs)
    if (revision === 0 && bytes !== undefined) {
      const added = this.#sql(NEW_VALUE).run(store, key, endsMs, bytes)
      if (added.changes === 1) return this.#wrote(store, added.lastInsertRowid, 1)
    }
    const found = this.#get(
      `SELECT revision, ${LIVE} AS live, bytes IS NOT NULL AS had FROM corespun_values ` +
        'WHERE store = ? AND key = ?',
      nowMs,
      store,
      key,
    )
    const current = found?.['live'] === 1 ? Number(found['revision']) : 0
    if (revision !== undefined && revision !== current) throw new Refusal('FLEET_CONFLICT', { key, revision })
    if (bytes === undefined && current === 0) return 0
    const { lastInsertRowid } = this.#sql(`INSERT OR REPLACE ${VALUE}`).run(store, key, endsMs, bytes ?? null)
    return this.#wrote(store, lastInsertRowid, Number(bytes !== undefined) - Number(found?.['had'] ?? 0))
  }

  #wrote(store: string, rowid: number | bigint, more: number): number {
    const last = (this.#last = Number(rowid))
    const written = this.#written.get(store)
    if (written === undefined) this.#written.set(store, { last, more })
    else {
      written.last = last
      written.more += more
    }
    return last
  }

  /** By keys, through their index. */
  pageValues(store: string, paging: BoundPaging): Page<Entry> {
    // The first part begins with the empty key.
    const { after } = paging
    const behind = after === undefined ? 'key >= ?' : 'key > ?'
    const all = `SELECT key, revision, bytes FROM corespun_values WHERE store = ? AND ${behind} AND ${LIVE}`
    const rows = this.#sql(`${all} ORDER BY key`).iterate(store, after ?? '', this.#nowMs())
    return pageOf(rows as IterableIterator<Row>, paging, (row) => ({
      key: row['key'] as string,
      bytes: row['bytes'] as Uint8Array,
      revision: row['revision'] as number,
    }))
  }

  /** The last revision of a store. */
  last(store: string): number {
    this.settle()
    return Number(this.#get('SELECT last FROM corespun_stores WHERE name = ?', store)?.['last'] ?? 0)
  }

  /** The last revision of the file. */
  lastRevision(): number {
    const last = "SELECT seq FROM sqlite_sequence WHERE name = 'corespun_values'"
    return (this.#last ??= Number(this.#get(last)?.['seq'] ?? 0))
  }

  /** Reads none of them: of those that are counted in the table, what has ended and is not swept is read. */
  valuesIn(store: string): number {
    this.settle()
    const ended =
      'SELECT count(*) FROM corespun_values INDEXED BY corespun_values_ends ' +
      'WHERE ends_ms > 0 AND ends_ms <= ? AND store = name AND bytes IS NOT NULL'
    const count = `SELECT count - (${ended}) AS count FROM corespun_stores WHERE name = ?`
    return Number(this.#get(count, this.#nowMs(), store)?.['count'] ?? 0)
  }

  /** @param key Of this one alone. */
  allOf(store: string, key?: string): Entry[] {
    if (key !== undefined) return [this.get(store, key)].filter((entry) => entry !== undefined)
    const all = `SELECT key, bytes, revision FROM corespun_values WHERE store = ? AND ${LIVE}`
    return this.#sql(`${all} ORDER BY revision`).all(store, this.#nowMs()) as unknown as Entry[]
  }

  /** The writes behind a revision, of each key the last one; a part of them, the first ones. */
  changesSince(revision: number): Change[] {
    return this.#sql(CHANGES).all(revision, CHANGES_MAX) as unknown as Change[]
  }

  /** What was written; no bytes when it was deleted. */
  written({ revision, key }: Change): Entry {
    const row = this.#get('SELECT bytes FROM corespun_values WHERE revision = ?', revision)
    return { key, revision, bytes: (row?.['bytes'] as Uint8Array | null | undefined) ?? undefined }
  }

  /** Remove values that have ended. @returns Whether there may be more. */
  sweep(): boolean {
    const ended = 'SELECT revision FROM corespun_values WHERE ends_ms > 0 AND ends_ms <= ? LIMIT ?'
    const sql = `DELETE FROM corespun_values WHERE revision IN (${ended})`
    return this.#run(sql, this.#nowMs(), SWEEP_MAX) === SWEEP_MAX
  }
}

/** Two items differ in it: within a millisecond by their number. */
const addedMsOf = ({ seq, added_ms }: Row): number => Number(added_ms) + (Number(seq) % 1000) / 1000

/** Rows up to the end of a part; it reads one more. */
function pageOf<Item extends { readonly bytes: Uint8Array | undefined }>(
  rows: Iterable<Row>,
  { itemsMax, bytesMax }: BoundPaging,
  itemOf: (row: Row) => Item,
): Page<Item> {
  const items: Item[] = []
  let bytes = 0
  for (const row of rows) {
    const item = itemOf(row)
    if (items.length === itemsMax || bytes >= bytesMax) {
      const last = items.at(-1) as { readonly id?: string; readonly key?: string } | undefined
      return { items, next: last?.id ?? last?.key }
    }
    items.push(item)
    bytes += item.bytes?.length ?? 0
  }
  return { items, next: undefined }
}
