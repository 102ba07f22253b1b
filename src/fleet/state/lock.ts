/**
 * Locks over machines: a value that its holder creates, extends and deletes (held.ts).
 *
 * Who waits is woken by a message that the lock is free, which may be lost, and tries by itself twice a
 * second. It is not served in order.
 */
import { onAbort } from '../../base/index.ts'
import type { End, Engine, Entry } from '../engine/engine.ts'
import { FleetError, hasCode, wrong } from '../errors.ts'
import { certainly, opened } from '../certainly.ts'
import { type FarOptions, farOptions } from '../settings.ts'
import { Held, type HeldLock, LOCKS, bytesOf, freeSubject, isOf } from './held.ts'

const POLL_MS = 500

/**
 * A lock over all machines of a fleet. `fleet.lock(name)` makes it; it has no state that would have to be
 * closed. It is not reentrant.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FarLock, connect } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const lock: FarLock = fleet.lock('report')
 * const first = await lock.guard(({ token }) => token)
 * const second = await lock.guard(({ token }) => token)
 * assert.ok(second > first)
 * ```
 */
export class FarLock {
  /** The name in the fleet. */
  readonly name: string
  readonly #engine: Engine
  readonly #leaseMs: number
  readonly #locks = opened(() => this.#engine.keyValue(LOCKS, { ttlMs: 0 }))

  /** @internal */
  constructor(engine: Engine, name: string, leaseMs: number) {
    this.name = name
    this.#engine = engine
    this.#leaseMs = leaseMs
  }

  /**
   * Wait for the lock, run `fn` and return its value. The lock is held until that settles.
   * @param options Of the waiting.
   * @throws {FleetError} `LOCK_TIMEOUT`; `LOCK_LOST` when the lease was over before `fn` had ended, whatever
   *   it returns; `FLEET_CLOSED`, `FLEET_ARGUMENT`.
   * @throws the signal's reason, and whatever `fn` throws.
   */
  async guard<R>(fn: (held: HeldLock) => R | Promise<R>, options?: FarOptions): Promise<R> {
    const { timeoutMs, signal } = farOptions('lock.guard()', options)
    if (typeof fn !== 'function') throw wrong('lock.guard(): fn', 'a function', fn)
    signal?.throwIfAborted()
    let isOver = false
    let fail!: (why: unknown) => void
    const over = new Promise<never>((_resolve, reject) => (fail = reject))
    over.catch(() => {}) // it may be over when nobody waits
    const aborted = (): void => fail(signal?.reason)
    if (signal !== undefined) onAbort(signal, aborted)
    const late = (): void => fail(new FleetError('LOCK_TIMEOUT', { lock: this.name, timeoutMs: timeoutMs! }))
    const endTimer = timeoutMs === undefined ? () => {} : this.#engine.clock.after(timeoutMs, late)
    const waiting = this.#wait(() => !isOver)
    let held: Held
    try {
      held = await Promise.race([waiting, over])
    } catch (error) {
      isOver = true
      // One that comes behind the end is free again.
      waiting.then(
        (late) => late.release(),
        () => {},
      )
      throw error
    } finally {
      endTimer()
      signal?.removeEventListener('abort', aborted)
    }
    return held.during(fn)
  }

  /**
   * Run `fn` if the lock is free.
   * @returns `{ value }`, or `undefined` when somebody holds it.
   * @throws {FleetError} `FLEET_TIMEOUT` when the servers do not confirm; `LOCK_LOST`, `FLEET_CLOSED`,
   *   `FLEET_ARGUMENT`.
   * @throws Whatever `fn` throws.
   */
  async tryGuard<R>(fn: (held: HeldLock) => R | Promise<R>): Promise<{ readonly value: R } | undefined> {
    if (typeof fn !== 'function') throw wrong('lock.tryGuard(): fn', 'a function', fn)
    const held = await this.#try(() => false)
    return held && { value: await held.during(fn) }
  }

  async #wait(goesOn: () => boolean): Promise<Held> {
    const { clock } = this.#engine
    let wake = (): void => {}
    let endListening: End | undefined
    try {
      for (;;) {
        const free = new Promise<void>((resolve) => (wake = resolve))
        const held = await this.#try(goesOn)
        if (held !== undefined) return held
        endListening ??= await certainly(this.#engine, () => this.#whenFree(() => wake()), goesOn)
        const endPoll = clock.after(POLL_MS, wake)
        await free
        endPoll()
        if (!goesOn()) throw new FleetError('FLEET_CLOSED', { reason: 'nobody waits for the lock' })
      }
    } finally {
      endListening?.()
    }
  }

  /** By a message, or by the end of the holder's value. */
  async #whenFree(on: () => void): Promise<End> {
    const { messages } = this.#engine
    if (messages !== undefined) return messages.listen(freeSubject(this.name), on)
    const changed = ({ bytes }: Entry): void => void (bytes === undefined && on())
    return (await this.#locks()).watch(changed, { from: 'now', key: this.name })
  }

  async #try(goesOn: () => boolean): Promise<Held | undefined> {
    const { name } = this
    const id = crypto.randomUUID()
    const locks = await certainly(this.#engine, () => this.#locks(), goesOn)
    const lease = { engine: this.#engine, locks, name, id, leaseMs: this.#leaseMs }
    // The servers may have the first of repeated writes.
    const sentMs = this.#engine.clock.nowMs()
    const create = (): Promise<number> => locks.put(name, bytesOf(id), { revision: 0, ttlMs: this.#leaseMs })
    try {
      return new Held(lease, await certainly(this.#engine, create, goesOn), sentMs)
    } catch (error) {
      if (!hasCode(error, 'FLEET_CONFLICT')) throw error
    }
    const entry = await certainly(this.#engine, () => locks.get(name), goesOn)
    return entry !== undefined && isOf(entry, id) ? new Held(lease, entry.revision, sentMs) : undefined
  }
}
