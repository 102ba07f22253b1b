/**
 * The port: what a fleet needs of an engine, and nothing else, in two halves.
 *
 * `Messages` go between machines, each delivered at most once; `Keeps` are queues, values and objects, and
 * what their operations promise is stated at each. NATS (nats/) and this process's memory (memory/) have both
 * halves, a file (sqlite/) and Postgres (postgres/) have the second. A suite checks each half
 * (messages.test.support.ts, keeps.test.support.ts). Bytes are never changed by either side after they were
 * passed on.
 */
import { FleetError, wrong } from '../errors.ts'
import type { SqlClient } from '../job-settings.ts'

/** Ends what was begun; a second call does nothing. */
export type End = () => void

/** Time and timers, so that tests have their own. */
export interface Clock {
  /** A point in time that only differences have a meaning of, in ms. */
  nowMs(): number
  /** Call `then` once after `ms`, unless it is ended before. */
  after(ms: number, then: () => void): End
}

/** Which part of what there is. */
export interface Paging {
  /** What `next` of the part before is. Absent: the first part. */
  readonly after?: string | undefined
  /** Most of them in a part, which ends earlier at {@link PAGE_BYTES_MAX}. */
  readonly itemsMax: number
}

/**
 * A part of what there is, in an order of the engine. What is there from the first part to the last is in one
 * of them at least, and in several only if it is written meanwhile.
 */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** Behind which the next part begins; `undefined`: this is the last one. */
  readonly next: string | undefined
}

/** A part of more bytes ends with the item that reaches it. */
export const PAGE_BYTES_MAX = 4_194_304

/**
 * The number that {@link Paging} begins behind, of engines that number what is written.
 * @throws {FleetError} `FLEET_ARGUMENT`.
 */
export function revisionOf(after: string): number {
  if (!/^\d{1,15}$/.test(after)) throw wrong('after', 'what next of the page before is', after)
  return Number(after)
}

/** A message that was asked or sent. */
export interface Message {
  readonly bytes: Uint8Array
  /** Reply to whoever asked, any number of times; of a message that was sent nothing happens. */
  reply(bytes: Uint8Array): void
}

/** A value of {@link KeyValue}. */
export interface Entry {
  readonly key: string
  /** `undefined`: deleted. */
  readonly bytes: Uint8Array | undefined
  /** The number of the write; later ones are larger. */
  readonly revision: number
}

/** How a value is written. */
export interface Writing {
  /** The one that the value must have; 0: it must not exist. Absent: any. */
  readonly revision?: number
  /** How long it is kept, 1000 or more. Absent: as long as the store keeps values. */
  readonly ttlMs?: number
  /** Its item is removed with the write, by engines that can; then its `done` does nothing. */
  readonly done?: Lease | undefined
}

/** What is watched. */
export interface Watching {
  /** `now`: changes alone. Default `start`. */
  readonly from?: 'start' | 'now'
  /** This key alone; its value may come later than the promise of `watch`. Absent: all keys. */
  readonly key?: string | undefined
  /** Called when it ends by itself, as with the connection. */
  readonly over?: ((why: FleetError) => void) | undefined
}

/** Small values by key, each write with a revision. Writes that are confirmed are kept. */
export interface KeyValue {
  /** `undefined` for a key that does not exist or was deleted. */
  get(key: string): Promise<Entry | undefined>
  /**
   * Write, and return the revision.
   * @throws {FleetError} `FLEET_CONFLICT`; `FLEET_TIMEOUT` when it may be written or not.
   */
  put(key: string, bytes: Uint8Array, how?: Writing): Promise<number>
  /**
   * Delete.
   * @param revision The one that the value must have. Absent: any.
   * @throws {FleetError} As `put`.
   */
  delete(key: string, revision?: number): Promise<void>
  /**
   * As `put` of a key that nobody else uses, within a transaction of a caller: it is there when that is
   * committed. Watches may pass over it. Absent where no caller can have one.
   * @throws What the caller's client throws.
   */
  putWithin?(client: SqlClient, key: string, bytes: Uint8Array): Promise<void>
  /** A part of the values. @throws {FleetError} `FLEET_ARGUMENT` for another `after` than a part has had. */
  page(paging: Paging): Promise<Page<Entry>>
  /** The revision of the last write of any key, deletions too; 0 without any. */
  last(): Promise<number>
  /**
   * Call `on` with all values, and then with all changes; of those of one key that follow each other at
   * once, with the last one at least. Resolves when `on` has had what there was.
   */
  watch(on: (entry: Entry) => void, how?: Watching): Promise<End>
}

/** Large values by name. */
export interface Objects {
  put(name: string, bytes: Uint8Array): Promise<void>
  /**
   * `undefined` for a name that does not exist.
   * @throws {FleetError} `FLEET_TOO_LARGE` for more than `bytesMax`, which is not read.
   */
  get(name: string, bytesMax: number): Promise<Uint8Array | undefined>
  delete(name: string): Promise<void>
}

/** An item that waits or is lent. */
export interface Waiting {
  readonly bytes: Uint8Array
  /** When it was added, in ms since 1970, by the server's clock: two items with one id differ in it. */
  readonly addedMs: number
}

/** An item, as a part of a queue has it. */
export interface Found extends Waiting {
  readonly id: string
}

/** An item of a queue, lent for a while: without `extend` or an end, another consumer has it afterwards. */
export interface Lease extends Waiting {
  readonly id: string
  /** How often it was lent, this time included. */
  readonly attempt: number
  /** Of its id in {@link TakeOptions.values} when it was lent; `null`: nothing. Absent: that is not read. */
  readonly value?: Entry | null | undefined
  /** How long ago it was added. No clock of a machine but the server's matters. */
  ageMs(): number
  /** Begin the span of the lease anew. */
  extend(): void
  /** It is done: remove it. Resolves when the server has confirmed that. */
  done(): Promise<void>
  /** Lend it again, to anybody, after `delayMs`. */
  again(delayMs: number): void
}

/** Which items are lent first: those of rank 0, and those of 2 when no others wait. */
export type Rank = 0 | 1 | 2
export const RANKS: readonly Rank[] = [0, 1, 2]

/** How items are taken. */
export interface TakeOptions {
  /** Most items lent at once. */
  readonly leasesMax: number
  /** How long an item is lent, to all consumers: the last one that begins decides. */
  readonly leaseMs: number
  /** A store of which each item has the value of its id, by engines that can. */
  readonly values?: string | undefined
}

/** Items that wait until a consumer is done with them: each is lent at least once. */
export interface Queue {
  /**
   * Add an item; false if one with that id waits or is lent.
   * @param instead The item that it replaces, as {@link find} has returned it; false if that has ended.
   * @throws {FleetError} `FLEET_TIMEOUT` when it may be added or not: adding it again is safe.
   */
  add(id: string, bytes: Uint8Array, rank: Rank, instead?: Waiting): Promise<boolean>
  /**
   * As `add`, within a transaction of a caller: it is added when that is committed. Absent where no caller
   * can have one.
   * @throws What the caller's client throws.
   */
  addWithin?(client: SqlClient, id: string, bytes: Uint8Array, rank: Rank): Promise<boolean>
  /**
   * As `add`, and `undefined` when a store has a value of that id. Absent where that is two operations.
   * @param on Of an item that was added it watches that value, until it returns true.
   */
  addUnless?(
    store: string,
    id: string,
    bytes: Uint8Array,
    rank: Rank,
    on?: (entry: Entry) => boolean,
  ): Promise<boolean | undefined>
  /** The item with that id. */
  find(id: string): Promise<Waiting | undefined>
  /**
   * A part of the items that wait or are lent.
   * @param isLent Whether those are left out that nobody has had, as far as the engine can leave them out.
   *   What was returned, and waits again, is there.
   * @throws {FleetError} `FLEET_ARGUMENT` for another `after` than a part has had.
   */
  page(paging: Paging, isLent?: boolean): Promise<Page<Found>>
  /** Remove an item, whoever has it. @param item As {@link find} has returned it: another one stays. */
  remove(id: string, item?: Waiting): Promise<void>
  take(on: (lease: Lease) => void, options: TakeOptions): Promise<End>
  /** Make what `take` needs of the server, for takers that may not. */
  prepare(leaseMs: number): Promise<void>
  /** How many items wait or are lent. */
  count(): Promise<number>
}

/** What is in a queue, for whoever looks at it. */
export interface QueueState {
  readonly name: string
  /** Items that nobody has had. */
  readonly waiting: number
  /** Items that are lent, or wait for their time after they were. */
  readonly lent: number
  /** How long the oldest item that nobody has had has waited, by the server's clock; without one 0. */
  readonly waitedMs: number
}

/** Without a server that has a limit: as NATS by default, so that a program that runs here runs there. */
export const MESSAGE_BYTES_MAX = 1_048_576

/** What both halves of an engine have. */
export interface Connected {
  readonly clock: Clock
  /** Most bytes of a message, of an item and of a value. */
  readonly messageBytesMax: number
  /** Resolves with the reason when the connection has ended for good. */
  readonly ended: Promise<string>
}

/** What carries messages between machines. */
export interface Messages extends Connected {
  /** To all that listen; at most once, in order. @throws {FleetError} `FLEET_CLOSED`. */
  send(subject: string, bytes: Uint8Array): void
  /**
   * Resolves when the server has all that was sent before.
   * @throws {FleetError} `FLEET_CLOSED`; `FLEET_TIMEOUT` when it may be lost on the way.
   */
  flush(): Promise<void>
  /**
   * Call `on` when the way to the servers is lost, and when it is found again, as long as there is a
   * connection. That it has ended for good is `ended`.
   */
  watchLink(on: (isLinked: boolean) => void): void
  /**
   * As `send`; `on` has every reply until the returned function is called, and `undefined`, soon, when
   * nobody listens.
   */
  ask(subject: string, bytes: Uint8Array, on: (reply: Uint8Array | undefined) => void): End
  /**
   * Resolves when messages that are sent from then on arrive. Behind its end `on` still has those that the
   * server had delivered before, which a `flush` waits for.
   */
  listen(subject: string, on: (message: Message) => void): Promise<End>
}

/** What keeps items, values and objects. */
export interface Keeps extends Connected {
  queue(name: string): Promise<Queue>
  /** `ttlMs`: how long a value is kept after its last write; 0: for good. */
  keyValue(name: string, options: { readonly ttlMs: number }): Promise<KeyValue>
  objects(name: string, options: { readonly ttlMs: number }): Promise<Objects>
  /** All queues that there are. Opens none. */
  queues(): Promise<readonly QueueState[]>
  /** How many values there are under a name; 0 for one that nobody has opened. */
  valuesIn(name: string): Promise<number>
}

/** An engine: what it keeps, and its messages where it has any. */
export interface Engine extends Keeps {
  /** What the address of such an engine begins with. */
  readonly scheme: string
  readonly messages: Messages | undefined
  close(): Promise<void>
}

/** @param use What needs them, as its caller writes it. @throws {FleetError} `FLEET_MESSAGES`. */
export function messagesOf({ messages, scheme }: Engine, use: string): Messages {
  if (messages === undefined) throw new FleetError('FLEET_MESSAGES', { use, engine: `${scheme}:` })
  return messages
}

/** The clock of the process. Its timers keep no process alive. */
export const CLOCK: Clock = {
  nowMs: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms).unref()
    return () => clearTimeout(timer)
  },
}
