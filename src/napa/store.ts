/**
 * `napa.store`: stores of Corespun whose values are napajs's payloads.
 *
 * A payload is what `transport.marshall` returns, with what it refers to beside it.
 */
import { StoreError, type Store as CoreStore, store as stores } from '../store/index.ts'
import { type Reply, partsOf } from './call.ts'
import { TransportContext, type Unchecked, marshall, unmarshall } from './values.ts'

/** Values by name, for all threads of the process. */
export class Store {
  readonly #store: CoreStore<Reply>

  /** @internal */
  constructor(store: CoreStore<Reply>) {
    this.#store = store
  }

  /** Its name. */
  get id(): string {
    return this.#store.id
  }

  /** How many values it has. */
  get size(): number {
    return this.#store.size
  }

  /** Whether it has a value of that name. */
  has(key: string): boolean {
    return this.#store.has(key)
  }

  /** The value of that name, a copy; `undefined` if it does not exist. */
  get(key: string): Unchecked {
    const found = this.#store.get(key)
    if (found === undefined) return undefined
    const [payload, saved] = partsOf(found)
    return unmarshall(payload, new TransportContext(saved))
  }

  /** Sets the value of a name. @throws {TransportError} for one that cannot travel. */
  set(key: string, value: Unchecked): void {
    const context = new TransportContext()
    const payload = marshall(value, context)
    this.#store.set(key, context.saved.length === 0 ? payload : [payload, context.saved])
  }

  /** Deletes the value of a name, if it has one. */
  delete(key: string): void {
    this.#store.delete(key)
  }
}

/**
 * Creates a store. As in napajs it goes when no thread has a reference to it: keep one.
 * @throws {StoreError} `STORE_EXISTS` when the name is taken.
 */
export function create(id: string): Store {
  return new Store(stores.create<Reply>(id, { weak: true }))
}

/** The store of that name, whichever thread created it; `undefined` if none has it. */
export function get(id: string): Store | undefined {
  try {
    return new Store(stores.get<Reply>(id))
  } catch (error) {
    if (error instanceof StoreError && error.code === 'STORE_UNKNOWN') return undefined
    throw error
  }
}

/** The store of that name, or a new one. */
export function getOrCreate(id: string): Store {
  return get(id) ?? new Store(stores.getOrCreate<Reply>(id, { weak: true }))
}

/** How many stores are open in this process. */
export function count(): number {
  return stores.count
}
