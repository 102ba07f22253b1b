/**
 * The engine in Postgres: queues, values and objects in three tables of a schema, for all machines that reach
 * the server.
 *
 * What is asked while a statement of its kind is on its way is grouped (group.ts), so 64 submits in flight
 * are a few commits. The server's clock decides all times. It has no messages: whoever waits for a change
 * watches values.
 *
 * Over 400 lines: one class, whose methods are those of the port, each with its statement.
 */
import { randomBytes } from 'node:crypto'
import { FleetError, checkSame } from '../../errors.ts'
import type { SqlClient } from '../../job-settings.ts'
import {
  CLOCK,
  type Engine,
  type Entry,
  type KeyValue,
  MESSAGE_BYTES_MAX,
  type Objects,
  PAGE_BYTES_MAX,
  type Page,
  type Paging,
  type Queue,
  type QueueState,
  type Rank,
  type Waiting,
  type Writing,
} from '../engine.ts'
import { closedError, failureOf } from './failures.ts'
import { Group } from './group.ts'
import { type Link, OPERATION_MS, type Row } from './link.ts'
import type { Names } from './schema.ts'
import { itemStatements, valueStatements } from './statements.ts'
import { Taking } from './taking.ts'
import { addedIn, addedMsOf, keyOf, textOf } from './text.ts'
import { Watching } from './watching.ts'

/** How long who closes waits for what was asked before. */
const CLOSE_MS = 2000
const SWEEP_MS = 10_000

interface Added {
  readonly queue: string
  readonly id: string
  readonly bytes: Uint8Array
  readonly rank: Rank
}
interface Put extends Writing {
  readonly key: string
  readonly bytes: Uint8Array | undefined
}

export class PostgresKeeps implements Engine {
  readonly scheme = 'postgres'
  readonly messages = undefined
  readonly clock = CLOCK
  readonly messageBytesMax = MESSAGE_BYTES_MAX
  readonly ended: Promise<string>
  readonly #link: Link
  readonly #channel: string
  /** Of this connection, which does not need its own hints. */
  readonly #id = randomBytes(9).toString('base64url')
  readonly #items: ReturnType<typeof itemStatements>
  readonly #values: ReturnType<typeof valueStatements>
  readonly #taking: Taking
  readonly #watching: Watching
  readonly #adds: Group<Added, boolean>
  readonly #finds: Group<readonly [queue: string, id: string], Waiting | undefined>
  readonly #gets: Group<readonly [store: string, key: string], Entry | undefined>
  /** One for each store: its row is locked by who writes. */
  readonly #puts = new Map<string, Group<Put, number>>()
  readonly #hints: Group<string, void>
  #sweepMs = 0
  #isClosed = false
  #closed: Promise<void> | undefined
  #end!: (reason: string) => void

  constructor(link: Link, names: Names) {
    this.#link = link
    this.#channel = names.channel
    this.#items = itemStatements(names)
    this.#values = valueStatements(names)
    this.ended = new Promise((resolve) => (this.#end = resolve))
    this.#taking = new Taking(link, CLOCK, this.#items, (queue) => this.#hint(`q${queue}`))
    this.#watching = new Watching(link, CLOCK, this.#values)
    this.#adds = this.#addGroup()
    this.#finds = new Group({
      run: async (all) => {
        const rows = await link.query(this.#items.find, columns(all))
        return placed(all, rows, (row) => ({ bytes: row['bytes'] as Uint8Array, addedMs: addedMsOf(row) }))
      },
      failed: (cause) => failureOf(cause, 'finding an item', OPERATION_MS),
    })
    this.#gets = new Group({
      run: async (all) => {
        const rows = await link.query(this.#values.get, columns(all))
        return placed(all, rows, (row, [, key]) => entryOf(row, key))
      },
      failed: (cause) => failureOf(cause, 'reading a value', OPERATION_MS),
    })
    this.#hints = new Group<string, void>({
      run: async (all) => {
        const hints = [...new Set(all)].map((hint) => `${this.#id} ${hint}`)
        await link.query(this.#values.hint, [this.#channel, hints])
        return all.map(() => undefined)
      },
      failed: (cause) => failureOf(cause, 'sending a hint', OPERATION_MS),
    })
    void link.listen()
  }

  #addGroup(): Group<Added, boolean> {
    return new Group<Added, boolean>({
      run: async (all) => {
        const rows = await this.#link.query(
          this.#items.add,
          [
            all.map(({ queue }) => queue),
            all.map(({ id }) => textOf(id)),
            all.map(({ rank }) => rank),
            all.map(({ bytes }) => bytes),
          ],
          false,
        )
        const added = new Set(rows.map(({ queue, id }) => `${String(queue)} ${keyOf(id)}`))
        for (const queue of new Set(rows.map((row) => row['queue'] as string))) {
          this.#taking.ready(queue)
          this.#hint(`q${queue}`)
        }
        return all.map(({ queue, id }) => added.has(`${queue} ${id}`))
      },
      keyOf: ({ queue, id }) => `${queue} ${id}`,
      bytesOf: ({ bytes }) => bytes.length,
      failed: (cause) => failureOf(cause, 'adding an item', OPERATION_MS),
    })
  }

  #putGroup(store: string): Group<Put, number> {
    const made = this.#puts.get(store)
    if (made !== undefined) return made
    const group = new Group<Put, number>({
      run: async (all) => {
        const rows = await this.#link.query(
          this.#values.put,
          [
            store,
            all.map(({ key }) => textOf(key)),
            all.map(({ bytes }) => bytes ?? null),
            all.map(({ revision }) => revision ?? null),
            all.map(({ ttlMs = 0 }) => ttlMs),
          ],
          false,
        )
        const written = new Map(rows.map(({ key, revision }) => [keyOf(key), Number(revision)]))
        if (rows.length > 0) {
          this.#watching.changed(store)
          this.#hint(`s${store}`)
        }
        return all.map(({ key }) => written.get(key) ?? 0)
      },
      keyOf: ({ key }) => key,
      bytesOf: ({ bytes }) => bytes?.length ?? 0,
      failed: (cause) => failureOf(cause, `writing to ${store}`, OPERATION_MS),
    })
    this.#puts.set(store, group)
    return group
  }

  /** Others are to look; a hint that is lost costs them the time until they look anyway. */
  #hint(hint: string): void {
    this.#hints.ask(hint).catch(() => {})
  }

  /** @param hint `undefined`: some may have been missed. */
  hinted(hint: string | undefined): void {
    if (this.#isClosed) return
    if (hint === undefined) {
      this.#taking.ready()
      this.#watching.changed()
      return
    }
    const [, id, kind, name] = /^(\S+) ([qs])(.*)$/s.exec(hint) ?? []
    if (id === this.#id) return
    if (kind === 'q') this.#taking.ready(name)
    if (kind === 's') this.#watching.changed(name)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw closedError()
  }

  async #query(
    operation: string,
    text: string,
    values: readonly unknown[] = [],
    repeats = true,
  ): Promise<Row[]> {
    this.#checkOpen()
    try {
      return await this.#link.query(text, values, repeats)
    } catch (error) {
      throw failureOf(error, operation, OPERATION_MS)
    }
  }

  async queue(name: string): Promise<Queue> {
    const sql = this.#items
    await this.#query(`opening ${name}`, sql.openQueue, [name])
    return {
      add: async (id, bytes, rank, instead) => {
        this.#checkOpen()
        const added = { queue: name, id, bytes, rank }
        return instead === undefined ? this.#adds.ask(added) : this.#replace(added, instead)
      },
      addWithin: (client, id, bytes, rank) => this.#addWithin(client, { queue: name, id, bytes, rank }),
      find: async (id) => (this.#checkOpen(), this.#finds.ask([name, id])),
      page: async ({ after = '', itemsMax }, isLent = false) => {
        const asked = [name, textOf(after), itemsMax, PAGE_BYTES_MAX, isLent]
        const rows = await this.#query(`reading ${name}`, sql.page, asked)
        return pageOf(
          rows,
          ({ id }) => keyOf(id),
          (row) => ({
            id: keyOf(row['id']),
            bytes: row['bytes'] as Uint8Array,
            addedMs: addedMsOf(row),
          }),
        )
      },
      remove: async (id, item) => {
        const added = item === undefined ? [null, null] : addedIn(item)
        await this.#query(`removing from ${name}`, sql.remove, [name, textOf(id), ...added], false)
        this.#taking.ready(name)
      },
      prepare: () => Promise.resolve(),
      count: async () => Number((await this.#query(`counting ${name}`, sql.count, [name]))[0]['count']),
      take: async (on, options) => (this.#checkOpen(), this.#taking.take(name, on, options)),
    }
  }

  async #replace({ queue, id, bytes, rank }: Added, instead: Waiting): Promise<boolean> {
    const asked = [queue, textOf(id), rank, bytes, ...addedIn(instead)]
    const rows = await this.#query(`replacing an item of ${queue}`, this.#items.replace, asked, false)
    if (rows.length === 0) return false
    this.#taking.ready(queue)
    this.#hint(`q${queue}`)
    return true
  }

  /** Its error is the caller's, whose transaction it has ended. */
  async #addWithin(client: SqlClient, { queue, id, bytes, rank }: Added): Promise<boolean> {
    this.#checkOpen()
    const { rows } = await client.query(this.#items.addWithin, [queue, textOf(id), rank, bytes])
    return rows.length > 0
  }

  async keyValue(name: string, { ttlMs: storeMs }: { readonly ttlMs: number }): Promise<KeyValue> {
    await this.#openStore(name, storeMs)
    const sql = this.#values
    return {
      get: async (key) => (this.#checkOpen(), this.#gets.ask([name, key])),
      put: (key, bytes, how) => this.#put(name, { ttlMs: storeMs, ...how, key, bytes }),
      putWithin: async (client, key, bytes) => {
        this.#checkOpen()
        await client.query(sql.putWithin, [name, textOf(key), bytes])
      },
      delete: async (key, revision) =>
        void (await this.#put(name, { key, bytes: undefined, ...(revision !== undefined && { revision }) })),
      page: async ({ after, itemsMax }: Paging): Promise<Page<Entry>> => {
        const asked = [name, after === undefined ? null : textOf(after), itemsMax, PAGE_BYTES_MAX]
        const rows = await this.#query(`reading ${name}`, sql.page, asked)
        return pageOf(
          rows,
          ({ key }) => keyOf(key),
          (row) => entryOf(row, keyOf(row['key'])),
        )
      },
      last: async () => (this.#checkOpen(), this.#watching.last(name)),
      watch: async (on, options) => (this.#checkOpen(), this.#watching.watch(name, on, options)),
    }
  }

  /** @throws {FleetError} `FLEET_MISMATCH`. */
  async #openStore(name: string, asked: number): Promise<void> {
    const open = (): Promise<Row[]> => this.#query(`opening ${name}`, this.#values.openStore, [name, asked])
    let rows = await open()
    // Whoever makes it does not see it in the same statement, or somebody else has made it meanwhile.
    if (rows.length === 0) rows = await open()
    checkSame(name, 'ttlMs', asked, Number(rows[0]['ttl_ms']))
  }

  async #put(store: string, put: Put): Promise<number> {
    this.#checkOpen()
    const revision = await this.#putGroup(store).ask(put)
    this.#sweep()
    if (revision > 0) return revision
    // What is not there is deleted already.
    if (put.bytes === undefined && (put.revision ?? 0) === 0) return 0
    if (put.revision !== undefined)
      throw new FleetError('FLEET_CONFLICT', { key: put.key, revision: put.revision })
    throw new FleetError('FLEET_ENGINE', {
      operation: `writing to ${store}`,
      reason: 'its row in corespun_names is missing',
    })
  }

  /** Remove what has ended, now and then. */
  #sweep(): void {
    const nowMs = CLOCK.nowMs()
    if (nowMs < this.#sweepMs || this.#isClosed) return
    this.#sweepMs = nowMs + SWEEP_MS
    // It is done again with a later write.
    this.#link.query(this.#values.sweep).catch(() => {})
  }

  async objects(name: string, { ttlMs }: { readonly ttlMs: number }): Promise<Objects> {
    const store = `objects of ${name}`
    await this.#openStore(store, ttlMs)
    return {
      put: async (key, bytes) => void (await this.#put(store, { key, bytes, ttlMs })),
      get: async (key, bytesMax) => {
        const asked = [store, textOf(key), bytesMax]
        const [row] = await this.#query(`reading ${name}`, this.#values.getObject, asked)
        if (row === undefined) return undefined
        const bytes = Number(row['size'])
        if (bytes > bytesMax) throw new FleetError('FLEET_TOO_LARGE', { bytes, valueBytesMax: bytesMax })
        return row['bytes'] as Uint8Array
      },
      delete: async (key) => void (await this.#put(store, { key, bytes: undefined })),
    }
  }

  async queues(): Promise<readonly QueueState[]> {
    const rows = await this.#query('reading the queues', this.#items.queues)
    return rows.map((row) => {
      const [items, waiting, waitedMs] = [row['items'], row['waiting'], row['waited_ms']].map(Number)
      return { name: row['name'] as string, waiting, lent: items - waiting, waitedMs }
    })
  }

  async valuesIn(name: string): Promise<number> {
    return Number((await this.#query(`counting ${name}`, this.#values.valuesIn, [name]))[0]['count'])
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  /** What was asked before is done first; a server that is away is not waited for. */
  async #close(): Promise<void> {
    this.#isClosed = true
    this.#watching.close()
    const work = async (): Promise<void> => {
      await Promise.all([
        this.#taking.close(),
        ...[this.#adds, ...this.#puts.values()].map((each) => each.idle()),
      ])
      await Promise.all([this.#hints, this.#gets, this.#finds].map((each) => each.idle()))
    }
    let end = (): void => {}
    const late = new Promise<void>((resolve) => (end = CLOCK.after(CLOSE_MS, resolve)))
    await Promise.race([work(), late])
    end()
    await this.#link.close()
    this.#end('close() was called')
  }
}

/** Names and keys, as two parameters. */
const columns = (all: readonly (readonly [string, string])[]): [string[], string[]] => [
  all.map(([name]) => name),
  all.map(([, key]) => textOf(key)),
]

/** A value for each that was asked, from rows that have the number of theirs. */
function placed<Asked, Value>(
  all: readonly Asked[],
  rows: readonly Row[],
  valueOf: (row: Row, asked: Asked) => Value,
): (Value | undefined)[] {
  const found = Array.from<Value | undefined>({ length: all.length })
  for (const row of rows) {
    const at = Number(row['at']) - 1
    found[at] = valueOf(row, all[at])
  }
  return found
}

const entryOf = ({ revision, bytes }: Row, key: string): Entry => ({
  key,
  bytes: bytes as Uint8Array,
  revision: Number(revision),
})

function pageOf<Item>(
  rows: readonly Row[],
  keyIn: (row: Row) => string,
  itemOf: (row: Row) => Item,
): Page<Item> {
  const last = rows.at(-1)
  const isMore = last !== undefined && Number(last['found']) > rows.length
  return { items: rows.map(itemOf), next: isMore ? keyIn(last) : undefined }
}
