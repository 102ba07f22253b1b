/**
 * The port: what a fleet needs of an engine between machines, and nothing else.
 *
 * Two adapters have it: NATS (nats/) and this process's memory (memory/). One suite checks both
 * (conformance.test.support.ts). Messages are delivered at most once; what the other operations promise is
 * stated at each. Bytes are never changed by either side after they were passed on.
 */

/** Ends what was begun; a second call does nothing. */
export type End = () => void

/** Time and timers, so that tests have their own. */
export interface Clock {
  /** A point in time that only differences have a meaning of, in ms. */
  nowMs(): number
  /** Call `then` once after so many ms, unless it is ended before. */
  after(ms: number, then: () => void): End
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
  /** Of the write; later ones are larger. */
  readonly revision: number
}

/** Small values by key, each write with a revision. Writes that are confirmed are kept. */
export interface KeyValue {
  /** `undefined` for a key that does not exist or was deleted. */
  get(key: string): Promise<Entry | undefined>
  /**
   * Write, and return the revision.
   * @param revision The one that the value must have; 0: it must not exist. Absent: any.
   * @throws {FleetError} `FLEET_CONFLICT`; `FLEET_TIMEOUT` when it may be written or not.
   */
  put(key: string, bytes: Uint8Array, revision?: number): Promise<number>
  /** Delete, whatever its revision is. */
  delete(key: string): Promise<void>
  /** Call `on` with all values, and then with all changes. Resolves when `on` has had what there was. */
  watch(on: (entry: Entry) => void): Promise<End>
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

/** An item of a queue, lent for a while: without `extend` or an end, another consumer has it afterwards. */
export interface Lease {
  readonly id: string
  readonly bytes: Uint8Array
  /** How often it was lent, this time included. */
  readonly attempt: number
  /** Begin the span of the lease anew. */
  extend(): void
  /** It is done: remove it. Resolves when the server has confirmed that. */
  done(): Promise<void>
  /** Lend it again, to anybody, after so many ms. */
  again(delayMs: number): void
}

/** Items that wait until a consumer is done with them: each is lent at least once. */
export interface Queue {
  /**
   * Add an item; false if one with that id waits or is lent.
   * @throws {FleetError} `FLEET_TIMEOUT` when it may be added or not: adding it again is safe.
   */
  add(id: string, bytes: Uint8Array): Promise<boolean>
  /** Take items, at most `leasesMax` at once. */
  take(on: (lease: Lease) => void, leasesMax: number): Promise<End>
  /** How many items wait or are lent. */
  count(): Promise<number>
}

/** Something between machines that carries messages and keeps values. */
export interface Engine {
  readonly clock: Clock
  /** What a message may have. */
  readonly messageBytesMax: number
  /** Resolves with the reason when the connection has ended for good. */
  readonly ended: Promise<string>
  /** To all that listen; at most once. @throws {FleetError} `FLEET_CLOSED`. */
  send(subject: string, bytes: Uint8Array): void
  /**
   * As `send`; `on` has every reply until the returned function is called, and `undefined`, soon, when
   * nobody listens.
   */
  ask(subject: string, bytes: Uint8Array, on: (reply: Uint8Array | undefined) => void): End
  /** Resolves when messages that are sent from then on arrive. */
  listen(subject: string, on: (message: Message) => void): Promise<End>
  /** @param leaseMs How long an item is lent. */
  queue(name: string, options: { readonly leaseMs: number }): Promise<Queue>
  /** @param ttlMs How long a value is kept after its last write; 0: for good. */
  keyValue(name: string, options: { readonly ttlMs: number }): Promise<KeyValue>
  objects(name: string, options: { readonly ttlMs: number }): Promise<Objects>
  close(): Promise<void>
}

/** The clock of the process. Its timers keep no process alive. */
export const CLOCK: Clock = {
  nowMs: () => performance.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms).unref()
    return () => clearTimeout(timer)
  },
}
