/**
 * The stores that this thread has opened: one object for each, as long as somebody holds it or it is open.
 *
 * The core keeps a store's memory as long as a thread has a handle on it. The handle goes when the thread
 * finds the store closed, or when the garbage collector finds that nobody holds the object: it sees some
 * hundred bytes of JavaScript, not the kilobytes behind them, so it may take its time.
 */
import { native } from '../native/index.ts'

interface Handle {
  readonly number: number
  readonly handle: number
}

export class Opened<Store extends object> {
  readonly #stores = new Map<number, WeakRef<Store>>()
  readonly #collected = new FinalizationRegistry<Handle>(({ number, handle }) => {
    if (this.find(number) === undefined) this.#stores.delete(number)
    native.storeDrop(handle)
  })

  /** The object of the store with that number, if there is one. */
  find(number: number): Store | undefined {
    return this.#stores.get(number)?.deref()
  }

  /** `store` is the object of the store with that number. */
  keep(store: Store, number: number, handle: number): void {
    this.#stores.set(number, new WeakRef(store))
    this.#collected.register(store, { number, handle }, store)
  }

  /** `store` needs its handle no longer. */
  letGo(store: Store, number: number, handle: number): void {
    this.#collected.unregister(store)
    if (this.find(number) === store) this.#stores.delete(number)
    native.storeDrop(handle)
  }
}
