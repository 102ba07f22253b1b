/**
 * Waiting until something that a transaction has read is changed.
 *
 * A watch of the core for each key and a listener of each ref, then a look whether all is still as it was
 * read: a change is either seen by that look or reported. No event reports an expiration, so the first one
 * due has a timer.
 */
import { TIMER_MS_MAX } from '../../base/index.ts'
import { thisWaits } from '../../bridge/index.ts'
import { native } from '../../native/index.ts'
import type { Entry } from '../entry.ts'
import { Store } from '../store.ts'
import { areCurrent } from './commit.ts'
import { TRef } from './t-ref.ts'
import type { Transaction } from './transaction.ts'

/** A wait for a change; `changed` resolves when there is one, or when `end` is called. */
export class Waiting {
  readonly changed: Promise<void>
  #resolve = (): void => {}
  readonly #reads: readonly Entry<Store>[]
  readonly #refs: readonly TRef<unknown>[]
  readonly #ticket = thisWaits().ticket()
  readonly #watches: readonly number[]
  #timer: ReturnType<typeof setTimeout> | undefined
  #hasEnded = false

  constructor({ reads, refs }: Transaction) {
    this.#reads = reads
    this.#refs = refs
    this.changed = new Promise((resolve) => (this.#resolve = resolve))
    const waits = thisWaits()
    waits.listen(this.#ticket, this.end)
    // Refs change in this thread only, so a wait for them alone does not keep it alive.
    if (reads.length > 0) waits.hold()
    for (const ref of refs) TRef.wait(ref, this.end)
    this.#watches = reads.map(({ store, key }) => Store.watchKey(store, key, this.#ticket))
    const leftMs = Math.min(...reads.map((read) => (read.leftMs === 0 ? Infinity : read.leftMs)))
    if (leftMs < Infinity) this.#timer = setTimeout(this.end, Math.min(leftMs + 1, TIMER_MS_MAX))
    // The attempt that follows finds a store closed.
    if (this.#watches.includes(-1) || !areCurrent(reads)) this.end()
  }

  readonly end = (): void => {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#timer)
    const waits = thisWaits()
    waits.forget(this.#ticket)
    for (const watch of this.#watches) if (watch >= 0) native.storeUnwatch(watch)
    for (const ref of this.#refs) TRef.leave(ref, this.end)
    if (this.#reads.length > 0) waits.release()
    this.#resolve()
  }
}
