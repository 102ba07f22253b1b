/**
 * A lock while it is held: a value with a time to live, which its holder writes anew.
 *
 * A holder stops by its own clock before the servers let the value end: the time is counted from before the
 * value was sent. What no clock excludes, a process that was stopped, the token does: each holder has a
 * larger one than all before, so whatever is written to can refuse the late one.
 */
import type { End, Engine, Entry, KeyValue } from '../engine/engine.ts'
import { FleetError, hasCode } from '../errors.ts'

/** How many times a lease is extended in its span. */
const EXTENSIONS = 3

/** The values of all locks. */
export const LOCKS = 'locks'
/** Where it is reported that a lock is free. */
export const freeSubject = (name: string): string => `corespun.lock.${name}`
/** The value of a holder. */
export const bytesOf = (id: string): Uint8Array => new Uint8Array(Buffer.from(id))
export const isOf = ({ bytes }: Entry, id: string): boolean =>
  bytes !== undefined && Buffer.from(bytes).toString() === id

/** A lock, as the function that runs under it sees it. */
export interface HeldLock {
  /** Larger than those of all holders before. */
  readonly token: number
  /** Aborted with `LOCK_LOST` when the lease is over before the function has ended. */
  readonly signal: AbortSignal
}

/** What a lock is held by. */
interface Lease {
  readonly engine: Engine
  readonly locks: KeyValue
  readonly name: string
  /** The id of this holder. */
  readonly id: string
  readonly leaseMs: number
}

export class Held {
  readonly #token: number
  readonly #lease: Lease
  readonly #controller = new AbortController()
  #revision: number
  #endsMs: number
  #endExtending: End = () => {}
  #endLosing: End = () => {}
  #extending: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(lease: Lease, revision: number, sentMs: number) {
    this.#token = revision
    this.#lease = lease
    this.#revision = revision
    this.#endsMs = sentMs + lease.leaseMs
    this.#extendLater()
    this.#loseLater()
  }

  /** @throws {FleetError} `LOCK_LOST`. */
  async during<R>(fn: (held: HeldLock) => R | Promise<R>): Promise<R> {
    const { signal } = this.#controller
    try {
      if (this.#lease.engine.clock.nowMs() >= this.#endsMs) this.#lose()
      signal.throwIfAborted()
      const value = await fn({ token: this.#token, signal })
      signal.throwIfAborted()
      return value
    } finally {
      await this.release()
    }
  }

  #extendLater(): void {
    const { engine, leaseMs } = this.#lease
    this.#endExtending = engine.clock.after(leaseMs / EXTENSIONS, () => {
      this.#extending = this.#extend()
    })
  }

  async #extend(): Promise<void> {
    const { engine, locks, name, id, leaseMs } = this.#lease
    const sentMs = engine.clock.nowMs()
    try {
      this.#revision = await locks.put(name, bytesOf(id), { revision: this.#revision, ttlMs: leaseMs })
      this.#endsMs = sentMs + leaseMs
    } catch (error) {
      // What is not confirmed is repeated until the lease is over.
      if (hasCode(error, 'FLEET_CONFLICT')) await this.#adopt()
    }
    if (!this.#isOver) this.#extendLater()
  }

  /** It has another revision: that of an extension which was not confirmed, or it is another's. */
  async #adopt(): Promise<void> {
    const { locks, name, id } = this.#lease
    try {
      const entry = await locks.get(name)
      if (entry !== undefined && isOf(entry, id)) this.#revision = entry.revision
      else this.#lose()
    } catch {
      // Not confirmed either.
    }
  }

  #loseLater(): void {
    const { clock } = this.#lease.engine
    this.#endLosing = clock.after(Math.max(0, this.#endsMs - clock.nowMs()), () => {
      if (clock.nowMs() < this.#endsMs) this.#loseLater()
      else this.#lose()
    })
  }

  #lose(): void {
    if (this.#isOver) return
    this.#stop()
    this.#controller.abort(new FleetError('LOCK_LOST', { lock: this.#lease.name, token: this.#token }))
  }

  #stop(): void {
    this.#isOver = true
    this.#endExtending()
    this.#endLosing()
  }

  /** What the servers do not confirm ends with the lease. Rejects never. */
  async release(): Promise<void> {
    if (this.#isOver) return
    this.#stop()
    await this.#extending
    const { engine, locks, name } = this.#lease
    try {
      await locks.delete(name, this.#revision)
      engine.messages?.send(freeSubject(name), new Uint8Array())
    } catch {
      // It is free when its lease is over.
    }
  }
}
