/**
 * The server of engines in memory: who listens, and what is kept.
 *
 * All of it is synchronous, and a client is a name on the network. Time is the
 * network's, so a test decides when a lease or a value runs out.
 */
import { FleetError, checkSame } from '../../errors.ts'
import {
  type Clock,
  type End,
  type Entry,
  PAGE_BYTES_MAX,
  type Page,
  type Paging,
  type QueueState,
  RANKS,
  type Rank,
  type Writing,
  revisionOf,
} from '../engine.ts'

const SWEEP_MIN = 256

/** What carries everything between clients and the broker. */
export interface Network {
  readonly clock: Clock
  /** When the clock was 0, in ms since 1970. */
  readonly epochMs: number
  /** After how many ms a request to the broker is given up; 0: nothing is ever lost. */
  readonly confirmMs: number
  /** Let something arrive at a client, or come from it: once, later, twice or never. */
  carry(client: string, arrive: () => void): void
  /** Commit what a client has the broker write: at once, or late or never where the leader is alone. */
  commit(client: string, write: () => void): void
}

/** Who listens to a subject. */
export interface Listener {
  readonly client: string
  readonly on: (bytes: Uint8Array, reply: (bytes: Uint8Array) => void) => void
}

/** What waits in a queue. */
export interface Item {
  /** The number of its addition. */
  readonly revision: number
  readonly id: string
  readonly bytes: Uint8Array
  readonly rank: Rank
  /** By the network's clock. */
  readonly addedMs: number
  attempt: number
  /** Who has it; nobody while it waits. */
  lease: Lent | undefined
  /** Ends its delay, while it has one. */
  delayed: End | undefined
}

/** An item at a taker. */
interface Lent {
  readonly taker: Taker
  stop: End
}

/** Who takes items of a queue. */
export interface Taker {
  readonly client: string
  readonly leasesMax: number
  /** @param attempt Which lending it is: an earlier one changes nothing any more. */
  readonly on: (item: Item, attempt: number) => void
  leases: number
}

export class BrokerQueue {
  readonly #network: Network
  readonly #items = new Map<string, Item>()
  readonly #takers: Taker[] = []
  #leaseMs = 0
  #revision = 0

  constructor(network: Network) {
    this.#network = network
  }

  get size(): number {
    return this.#items.size
  }

  state(name: string): QueueState {
    const nowMs = this.#network.clock.nowMs()
    const waits = [...this.#items.values()].filter(({ attempt }) => attempt === 0)
    const waitedMs = waits.length === 0 ? 0 : nowMs - Math.min(...waits.map(({ addedMs }) => addedMs))
    return { name, waiting: waits.length, lent: this.#items.size - waits.length, waitedMs }
  }

  /** Add an item, and replace the one with its id. */
  put(id: string, bytes: Uint8Array, rank: Rank): true {
    const before = this.#items.get(id)
    // Both have an id, and differ in it.
    const addedMs = Math.max(this.#network.clock.nowMs(), before === undefined ? 0 : before.addedMs + 1)
    if (before !== undefined) this.done(before)
    const fresh = { attempt: 0, lease: undefined, delayed: undefined }
    this.#items.set(id, { revision: ++this.#revision, id, bytes, rank, addedMs, ...fresh })
    this.#lend()
    return true
  }

  find(id: string): Item | undefined {
    return this.#items.get(id)
  }

  page(paging: Paging, isLent: boolean): Page<Item> {
    return pageOf(this.#items.values(), paging, ({ attempt }) => !isLent || attempt > 0)
  }

  remove(id: string): void {
    const item = this.#items.get(id)
    if (item !== undefined) this.done(item)
  }

  take(taker: Taker, leaseMs: number): End {
    this.#leaseMs = leaseMs
    this.#takers.push(taker)
    this.#lend()
    return () => {
      const index = this.#takers.indexOf(taker)
      if (index >= 0) this.#takers.splice(index, 1)
    }
  }

  extend(item: Item, attempt: number): void {
    if (item.lease !== undefined && item.attempt === attempt) this.#limit(item, item.lease)
  }

  /** Done, as well, when it has been lent to somebody else by now. */
  done(item: Item): void {
    this.#end(item)
    item.delayed?.()
    if (this.#items.get(item.id) === item) this.#items.delete(item.id)
    this.#lend()
  }

  again(item: Item, attempt: number, delayMs: number): void {
    if (item.lease === undefined || item.attempt !== attempt) return
    this.#end(item)
    item.delayed = this.#network.clock.after(delayMs, () => {
      item.delayed = undefined
      this.#lend()
    })
    this.#lend()
  }

  #lend(): void {
    for (const rank of RANKS)
      for (const item of this.#items.values()) {
        if (item.rank !== rank || item.lease !== undefined || item.delayed !== undefined) continue
        const index = this.#takers.findIndex(({ leases, leasesMax }) => leases < leasesMax)
        if (index < 0) return
        const [taker] = this.#takers.splice(index, 1)
        this.#takers.push(taker) // in turn
        taker.leases++
        item.lease = { taker, stop: () => {} }
        this.#limit(item, item.lease)
        taker.on(item, ++item.attempt)
      }
  }

  /** The span of a lease begins, anew too. */
  #limit(item: Item, lease: Lent): void {
    lease.stop()
    lease.stop = this.#network.clock.after(this.#leaseMs, () => {
      this.#end(item)
      this.#lend()
    })
  }

  #end(item: Item): void {
    if (item.lease === undefined) return
    item.lease.stop()
    item.lease.taker.leases--
    item.lease = undefined
  }
}

export class BrokerKeyValue {
  readonly #network: Network
  readonly ttlMs: number
  readonly #entries = new Map<string, Entry & { readonly endsMs: number }>()
  readonly #watchers = new Set<(entry: Entry) => void>()
  #revision = 0
  /** From this number of entries on, those that have ended are looked for. */
  #sweepAt = SWEEP_MIN

  constructor(network: Network, ttlMs: number) {
    this.#network = network
    this.ttlMs = ttlMs
  }

  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.endsMs > this.#network.clock.nowMs()) return entry
    this.#entries.delete(key)
    return undefined
  }

  /** Deleted without bytes. @throws {FleetError} `FLEET_CONFLICT`. */
  put(key: string, bytes: Uint8Array | undefined, { revision, ttlMs = this.ttlMs }: Writing = {}): number {
    const current = this.get(key)?.revision ?? 0
    if (revision !== undefined && revision !== current)
      throw new FleetError('FLEET_CONFLICT', { key, revision })
    const endsMs = this.#network.clock.nowMs() + (ttlMs || Infinity)
    const entry = { key, bytes, revision: ++this.#revision, endsMs }
    this.#entries.delete(key)
    if (bytes !== undefined) this.#entries.set(key, entry)
    if (this.#entries.size >= this.#sweepAt) this.#sweep()
    for (const watcher of this.#watchers) watcher(entry)
    return entry.revision
  }

  page(paging: Paging): Page<Entry> {
    const nowMs = this.#network.clock.nowMs()
    return pageOf(this.#entries.values(), paging, ({ endsMs }) => endsMs > nowMs)
  }

  /** How many have not ended. */
  get size(): number {
    this.#sweep()
    return this.#entries.size
  }

  get last(): number {
    return this.#revision
  }

  #sweep(): void {
    for (const key of [...this.#entries.keys()]) this.get(key)
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.#entries.size)
  }

  watch(on: (entry: Entry) => void, from: 'start' | 'now'): End {
    const nowMs = this.#network.clock.nowMs()
    if (from === 'start') for (const entry of this.#entries.values()) if (entry.endsMs > nowMs) on(entry)
    this.#watchers.add(on)
    return () => void this.#watchers.delete(on)
  }
}

/** Where engines in memory meet. */
export class Broker {
  readonly network: Network
  readonly listeners = new Map<string, Set<Listener>>()
  readonly #queues = new Map<string, BrokerQueue>()
  readonly #keyValues = new Map<string, BrokerKeyValue>()
  #clients = 0

  constructor(network: Network) {
    this.network = network
  }

  /** A name for a client on the network. */
  clientName(): string {
    return `client ${++this.#clients}`
  }

  queue(name: string): BrokerQueue {
    return found(this.#queues, name, () => new BrokerQueue(this.network))
  }

  states(): QueueState[] {
    return [...this.#queues].map(([name, queue]) => queue.state(name))
  }

  /** How many values there are, without opening any. */
  valuesIn(name: string): number {
    return this.#keyValues.get(name)?.size ?? 0
  }

  /**
   * Objects are such values too, under names of their own.
   * @throws {FleetError} `FLEET_MISMATCH`.
   */
  keyValue(name: string, ttlMs: number): BrokerKeyValue {
    const values = found(this.#keyValues, name, () => new BrokerKeyValue(this.network, ttlMs))
    checkSame(name, 'ttlMs', ttlMs, values.ttlMs)
    return values
  }
}

/** A part of what was written in the order of its numbers. */
function pageOf<Kept extends { readonly revision: number; readonly bytes: Uint8Array | undefined }>(
  all: Iterable<Kept>,
  { after = '0', itemsMax }: Paging,
  isWanted: (kept: Kept) => boolean,
): Page<Kept> {
  const from = revisionOf(after)
  const items: Kept[] = []
  let bytes = 0
  for (const kept of all) {
    if (kept.revision <= from || !isWanted(kept)) continue
    if (items.length === itemsMax || bytes >= PAGE_BYTES_MAX)
      return { items, next: String(items.at(-1)?.revision) }
    items.push(kept)
    bytes += kept.bytes?.length ?? 0
  }
  return { items, next: undefined }
}

function found<Value>(all: Map<string, Value>, name: string, make: () => Value): Value {
  const existing = all.get(name)
  if (existing !== undefined) return existing
  const value = make()
  all.set(name, value)
  return value
}
