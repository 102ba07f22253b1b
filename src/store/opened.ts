/**
 * The stores that this thread has opened, one object for each.
 *
 * The core keeps the memory of a store as long as a thread has a handle on it. The handle is dropped when the
 * thread finds the store closed, or when the object is collected, which may be late: the collector sees some
 * hundred bytes of JavaScript, not the kilobytes of the core.
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

  find(number: number): Store | undefined {
    return this.#stores.get(number)?.deref()
  }

  keep(store: Store, number: number, handle: number): void {
    this.#stores.set(number, new WeakRef(store))
    this.#collected.register(store, { number, handle }, store)
  }

  letGo(store: Store, number: number, handle: number): void {
    this.#collected.unregister(store)
    if (this.find(number) === store) this.#stores.delete(number)
    native.storeDrop(handle)
  }
}
