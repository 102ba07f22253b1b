/**
 * The server of engines in memory: who listens, and what is kept.
 *
 * All of it is synchronous, and a client is a name on the network. Time is the
 * network's, so a test decides when a lease or a value runs out.
 */
import { FleetError } from '../../errors.ts'
import type { Clock, End, Entry } from '../engine.ts'

/** What carries everything between clients and the broker. */
export interface Network {
  readonly clock: Clock
  /** After how many ms a request to the broker is given up; 0: nothing is ever lost. */
  readonly confirmMs: number
  /** Let something arrive at a client, or come from it: once, later, twice or never. */
  carry(client: string, arrive: () => void): void
}

/** Who listens to a subject. */
export interface Listener {
  readonly client: string
  readonly on: (bytes: Uint8Array, reply: (bytes: Uint8Array) => void) => void
}

/** What waits in a queue. */
interface Item {
  readonly id: string
  readonly bytes: Uint8Array
  attempt: number
  /** Who has it; nobody while it waits. */
  lease: Lent | undefined
  isDelayed: boolean
}

/** An item at a taker. */
interface Lent {
  /** Which lending it is: an earlier one changes nothing any more. */
  readonly lending: number
  readonly taker: Taker
  stop: End
}

/** Who takes items of a queue. */
export interface Taker {
  readonly client: string
  readonly leasesMax: number
  readonly on: (id: string, bytes: Uint8Array, attempt: number, lending: number) => void
  leases: number
}

export class BrokerQueue {
  readonly #network: Network
  readonly #leaseMs: number
  readonly #items = new Map<string, Item>()
  readonly #takers: Taker[] = []
  #lendings = 0

  constructor(network: Network, leaseMs: number) {
    this.#network = network
    this.#leaseMs = leaseMs
  }

  get size(): number {
    return this.#items.size
  }

  add(id: string, bytes: Uint8Array): boolean {
    if (this.#items.has(id)) return false
    this.#items.set(id, { id, bytes, attempt: 0, lease: undefined, isDelayed: false })
    this.#lend()
    return true
  }

  take(taker: Taker): End {
    this.#takers.push(taker)
    this.#lend()
    return () => {
      const index = this.#takers.indexOf(taker)
      if (index >= 0) this.#takers.splice(index, 1)
    }
  }

  extend(id: string, lending: number): void {
    const item = this.#items.get(id)
    if (item?.lease?.lending === lending) this.#limit(item, item.lease)
  }

  /** Done, as well, when it has been lent to somebody else by now. */
  done(id: string): void {
    const item = this.#items.get(id)
    if (item === undefined) return
    this.#end(item)
    this.#items.delete(id)
    this.#lend()
  }

  again(id: string, lending: number, delayMs: number): void {
    const item = this.#items.get(id)
    if (item?.lease?.lending !== lending) return
    this.#end(item)
    item.isDelayed = true
    this.#network.clock.after(delayMs, () => {
      item.isDelayed = false
      this.#lend()
    })
    this.#lend()
  }

  #lend(): void {
    for (const item of this.#items.values()) {
      if (item.lease !== undefined || item.isDelayed) continue
      const index = this.#takers.findIndex(({ leases, leasesMax }) => leases < leasesMax)
      if (index < 0) return
      const [taker] = this.#takers.splice(index, 1)
      this.#takers.push(taker) // in turn
      item.attempt++
      taker.leases++
      item.lease = { lending: ++this.#lendings, taker, stop: () => {} }
      this.#limit(item, item.lease)
      taker.on(item.id, item.bytes, item.attempt, item.lease.lending)
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
  readonly #ttlMs: number
  readonly #entries = new Map<string, Entry & { readonly endsMs: number }>()
  readonly #watchers = new Set<(entry: Entry) => void>()
  #revision = 0

  constructor(network: Network, ttlMs: number) {
    this.#network = network
    this.#ttlMs = ttlMs
  }

  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.endsMs > this.#network.clock.nowMs()) return entry
    this.#entries.delete(key)
    return undefined
  }

  /** Deleted without bytes. @throws {FleetError} `FLEET_CONFLICT`. */
  put(key: string, bytes: Uint8Array | undefined, revision: number | undefined): number {
    const current = this.get(key)?.revision ?? 0
    if (revision !== undefined && revision !== current)
      throw new FleetError('FLEET_CONFLICT', { key, revision })
    const nowMs = this.#network.clock.nowMs()
    const entry = { key, bytes, revision: ++this.#revision, endsMs: nowMs + (this.#ttlMs || Infinity) }
    this.#entries.delete(key)
    if (bytes !== undefined) this.#entries.set(key, entry) // behind those that end earlier
    for (const [old, { endsMs }] of this.#entries) {
      if (endsMs > nowMs) break
      this.#entries.delete(old)
    }
    for (const watcher of this.#watchers) watcher(entry)
    return entry.revision
  }

  watch(on: (entry: Entry) => void): End {
    for (const entry of this.#entries.values()) if (entry.endsMs > this.#network.clock.nowMs()) on(entry)
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

  queue(name: string, leaseMs: number): BrokerQueue {
    return found(this.#queues, name, () => new BrokerQueue(this.network, leaseMs))
  }

  /** Objects are such values too, under names of their own. */
  keyValue(name: string, ttlMs: number): BrokerKeyValue {
    return found(this.#keyValues, name, () => new BrokerKeyValue(this.network, ttlMs))
  }
}

function found<Value>(all: Map<string, Value>, name: string, make: () => Value): Value {
  const existing = all.get(name)
  if (existing !== undefined) return existing
  const value = make()
  all.set(name, value)
  return value
}
