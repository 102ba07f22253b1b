/**
 * The engine in a file: queues, values and objects in SQLite, for all processes of one machine.
 *
 * The file is in a thread of its own (thread.ts), so the thread that asks never waits for a disk. What is
 * asked in one turn goes there as one message, or as two where the thread would wait for the first. What
 * comes back is received in the order in which it was committed. It has no messages: whoever waits for a
 * change watches values.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import { isBuiltin } from 'node:module'
import { resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'
import {
  CLOCK,
  type End,
  type Engine,
  type Entry,
  type KeyValue,
  type Lease,
  MESSAGE_BYTES_MAX,
  type Objects,
  PAGE_BYTES_MAX,
  type Paging,
  type Queue,
  type QueueState,
  type TakeOptions,
  type Waiting,
} from '../engine.ts'
import type { Item, Name, Outcome, Request, Requests } from './requests.ts'
import type { BoundPaging, Lent, Refusal } from './tables.ts'
import type { FromThread, ToThread } from './thread.ts'

/** The first Node that has SQLite without a flag. */
const NODE = '22.13'

/**
 * Open a file, and make it if it does not exist.
 * @throws {FleetError} `FLEET_NODE`, and the codes of a file that cannot be used.
 */
export async function sqliteEngine(path: string): Promise<Engine> {
  if (!isBuiltin('node:sqlite'))
    throw new FleetError('FLEET_NODE', { use: 'sqlite:', needs: NODE, found: process.versions.node })
  const file = resolve(path)
  const name = 'corespun sqlite'
  const thread = new Worker(new URL('./thread.js', import.meta.url), {
    name,
    workerData: { file },
    execArgv: [],
  })
  const opened = await new Promise<Refusal | true>((settle, reject) => {
    thread.once('error', reject)
    thread.once('message', (message: FromThread) => void ('opened' in message && settle(message.opened)))
  })
  if (opened !== true) throw errorOf(opened)
  return new SqliteEngine(thread)
}

const errorOf = ({ code, facts }: Refusal): FleetError => new FleetError(code, facts)

/** So many requests of a turn are sent before its end, when the thread would wait for them. */
const EARLY = 16

/** Whose item is still to be removed. */
interface OwnLease extends Lease {
  item: Item | undefined
}

/** Who waits for a reply. */
interface Asked {
  resolve(value: never): void
  reject(error: unknown): void
}

class SqliteEngine implements Engine {
  readonly scheme = 'sqlite'
  readonly messages = undefined
  readonly clock = CLOCK
  readonly messageBytesMax = MESSAGE_BYTES_MAX
  readonly ended: Promise<string>
  readonly #thread: Worker
  readonly #asked = new Map<number, Asked>()
  readonly #takes = new Map<number, (lent: Lent) => void>()
  readonly #watches = new Map<number, { on(entry: Entry): void; over(why: FleetError): void }>()
  /** Of this turn. */
  #requests: Request[] = []
  #count = 0
  /** The last request that was sent, and the last that was replied to. */
  #sent = 0
  #replied = 0
  /** Why it has ended, or ends. */
  #reason: string | undefined

  constructor(thread: Worker) {
    this.#thread = thread
    thread.on('message', (outcome: Outcome) => this.#received(outcome))
    this.ended = new Promise((end) => {
      thread.on('error', (error) => (this.#reason ??= reasonOf(error)))
      thread.once('exit', () => {
        this.#reason ??= 'the thread of the file has ended'
        this.#over()
        end(this.#reason)
      })
    })
  }

  #received({ entries, leases, replies, over, fatal }: Outcome): void {
    if (this.#reason === undefined) {
      for (const [id, entry] of entries) this.#watches.get(id)?.on(entry)
      for (const [id, lent] of leases) this.#lent(id, lent)
    }
    this.#replied = replies.at(-1)?.[0] ?? this.#replied
    for (const [id, value, failure] of replies) {
      const asked = this.#asked.get(id)
      this.#asked.delete(id)
      if (failure === undefined) asked?.resolve(value as never)
      else asked?.reject(errorOf(failure))
    }
    if (fatal !== undefined) this.#reason ??= errorOf(fatal).message
    for (const id of over)
      this.#lost(
        id,
        new FleetError('FLEET_CLOSED', { reason: 'changes were read too late to have all deletions' }),
      )
  }

  #lent(take: number, lent: Lent): void {
    const on = this.#takes.get(take)
    if (on !== undefined) on(lent)
    else this.#send('again', lent.seq, lent.attempt, 0)
  }

  /** Nothing more comes from the thread. */
  #over(): void {
    for (const { reject } of this.#asked.values()) reject(this.#closedError())
    this.#asked.clear()
    for (const id of [...this.#watches.keys()]) this.#lost(id, this.#closedError())
  }

  #lost(watch: number, why: FleetError): void {
    const watched = this.#watches.get(watch)
    this.#watches.delete(watch)
    watched?.over(why)
  }

  #closedError(): FleetError {
    return new FleetError('FLEET_CLOSED', { reason: this.#reason ?? '' })
  }

  /** Without a reply; nothing when it has ended. */
  #send<Asked extends Name>(name: Asked, ...args: Requests[Asked]): number {
    const id = ++this.#count
    if (this.#reason !== undefined) return id
    if (this.#requests.length === 0) setImmediate(() => this.#flush())
    this.#requests.push([id, name, ...args] as unknown as Request)
    if (this.#requests.length === EARLY && this.#replied === this.#sent) this.#flush()
    return id
  }

  #ask<Value>(name: Name, ...args: Requests[Name]): Promise<Value> {
    if (this.#reason !== undefined) return Promise.reject(this.#closedError())
    return new Promise((resolve, reject) => this.#asked.set(this.#send(name, ...args), { resolve, reject }))
  }

  /** What has not begun ends. */
  async #begun(asked: Promise<unknown>, end: End): Promise<void> {
    try {
      await asked
    } catch (error) {
      end()
      throw error
    }
  }

  #flush(): void {
    if (this.#requests.length === 0) return
    const requests = this.#requests
    this.#requests = []
    this.#sent = requests.at(-1)![0]
    this.#thread.postMessage(requests satisfies ToThread)
  }

  async queue(name: string): Promise<Queue> {
    await this.#ask('openQueue', name)
    return {
      add: (id, bytes, rank, instead) => this.#ask('add', name, id, own(bytes), rank, instead?.addedMs),
      addUnless: (store, id, bytes, rank, on) =>
        this.#watched(this.#ask('add', name, id, own(bytes), rank, undefined, store, on !== undefined), on),
      find: (id) => this.#ask<Waiting | undefined>('find', name, id),
      page: (paging, isLent = false) => this.#ask('pageItems', name, bound(paging), isLent),
      remove: (id, item) => this.#ask('remove', name, id, item?.addedMs),
      prepare: () => Promise.resolve(),
      count: () => this.#ask('count', name),
      take: (on, options) => this.#take(name, on, options),
    }
  }

  /** @param added What was asked for last: its number is that of the watch. */
  async #watched(
    added: Promise<boolean | undefined>,
    on: ((entry: Entry) => boolean) | undefined,
  ): Promise<boolean | undefined> {
    if (on === undefined) return added
    const watch = this.#count
    const changed = (entry: Entry): void => {
      if (on(entry) && this.#watches.delete(watch)) this.#send('endWatch', watch)
    }
    this.#watches.set(watch, { on: changed, over: () => {} })
    let isAdded: boolean | undefined
    try {
      return (isAdded = await added)
    } finally {
      if (isAdded !== true) this.#watches.delete(watch)
    }
  }

  async #take(name: string, on: (lease: Lease) => void, options: TakeOptions): Promise<End> {
    const take = ++this.#count
    this.#takes.set(take, (lent) => on(this.#lease(lent, options.leaseMs)))
    const end = (): void => {
      if (this.#takes.delete(take)) this.#send('endTake', take)
    }
    await this.#begun(this.#ask('take', take, name, { ...options }), end)
    return end
  }

  #lease(lent: Lent, leaseMs: number): Lease {
    const { seq, attempt, ...rest } = lent
    const lease: OwnLease = {
      ...rest,
      attempt,
      item: [seq, attempt],
      ageMs: () => Math.max(0, Date.now() - rest.addedMs),
      extend: () => void this.#send('extend', seq, attempt, leaseMs),
      done: () => (lease.item === undefined ? Promise.resolve() : this.#ask('done', seq, attempt)),
      again: (delayMs) => void this.#send('again', seq, attempt, delayMs),
    }
    return lease
  }

  async keyValue(name: string, { ttlMs: storeMs }: { readonly ttlMs: number }): Promise<KeyValue> {
    await this.#ask('openStore', name, storeMs)
    return {
      get: (key) => this.#ask<Entry | undefined>('get', name, key),
      put: async (key, bytes, { revision, ttlMs = storeMs, done } = {}) => {
        const lease = done as OwnLease | undefined
        const written = await this.#ask<number>('put', name, key, own(bytes), revision, ttlMs, lease?.item)
        if (lease !== undefined) lease.item = undefined
        return written
      },
      delete: async (key, revision) => void (await this.#ask('put', name, key, undefined, revision, 0)),
      page: (paging) => this.#ask('pageValues', name, bound(paging)),
      last: () => this.#ask('last', name),
      watch: async (on, { from, key, over = () => {} } = {}) => {
        const watch = ++this.#count
        this.#watches.set(watch, { on, over })
        const end = (): void => {
          if (this.#watches.delete(watch)) this.#send('endWatch', watch)
        }
        await this.#begun(this.#ask('watch', watch, name, from === 'now', key), end)
        return end
      },
    }
  }

  async objects(name: string, { ttlMs }: { readonly ttlMs: number }): Promise<Objects> {
    const store = `objects of ${name}`
    await this.#ask('openStore', store, ttlMs)
    return {
      put: async (key, bytes) => void (await this.#ask('put', store, key, own(bytes), undefined, ttlMs)),
      get: (key, bytesMax) => this.#ask<Uint8Array | undefined>('getObject', store, key, bytesMax),
      delete: async (key) => void (await this.#ask('put', store, key, undefined, undefined, 0)),
    }
  }

  queues(): Promise<readonly QueueState[]> {
    return this.#ask('queues')
  }

  valuesIn(name: string): Promise<number> {
    return this.#ask('valuesIn', name)
  }

  /** What was asked before is committed first. */
  async close(): Promise<void> {
    if (this.#reason === undefined) {
      this.#flush()
      this.#reason = 'close() was called'
      this.#thread.postMessage('close' satisfies ToThread)
    }
    await this.ended
  }
}

const bound = ({ after, itemsMax }: Paging): BoundPaging => ({ after, itemsMax, bytesMax: PAGE_BYTES_MAX })

/** A message to a thread has all of the memory that a view is a part of. */
const own = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
