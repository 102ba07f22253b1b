/**
 * The stores of the process by name, and how a store travels: as its number.
 *
 * A thread has one object per store, as long as somebody holds it.
 */
import { native } from '../native/index.ts'
import { thisScratch } from '../bridge/index.ts'
import { register } from '../transport/index.ts'
import { registerHandle } from '../transport/internal.ts'
import { StoreError, wrong } from './errors.ts'
import { parseSettings, type Settings, type StoreSettings } from './settings.ts'
import { Store, opened } from './store.ts'

const ID_LENGTH_MAX = 256
/** Names of stores that an error lists. */
const KNOWN_MAX = 10

/** The stores of this process. */
export const store = {
  /**
   * Make a store.
   * @throws {StoreError} `STORE_EXISTS`, `STORE_SETTING`, `STORE_ARGUMENT`.
   */
  create<Value = unknown>(id: string, settings: StoreSettings = {}): Store<Value> {
    const number = make('store.create()', id, parseSettings(settings, 'store.create()'))
    if (number === 0) throw new StoreError('STORE_EXISTS', { id })
    return open(number) as Store<Value>
  },

  /**
   * The store with that name, made by any thread.
   * @throws {StoreError} `STORE_UNKNOWN`, `STORE_ARGUMENT`.
   */
  get<Value = unknown>(id: string): Store<Value> {
    checkId('store.get()', id)
    return open(native.storeNumber(id), id) as Store<Value>
  },

  /**
   * The store with that name, made with these settings if there is none; those of an existing one stay.
   * @throws {StoreError} `STORE_SETTING`, `STORE_ARGUMENT`.
   */
  getOrCreate<Value = unknown>(id: string, settings: StoreSettings = {}): Store<Value> {
    const parsed = parseSettings(settings, 'store.getOrCreate()')
    for (;;) {
      checkId('store.getOrCreate()', id)
      const number = native.storeNumber(id) || make('store.getOrCreate()', id, parsed)
      const found = number === 0 ? undefined : tryOpen(number)
      // Closed, or made, by another thread in between: once more.
      if (found !== undefined) return found as Store<Value>
    }
  },

  /** How many stores are open. */
  get count(): number {
    return native.storeCount()
  },
}

function make(call: string, id: string, settings: Settings): number {
  checkId(call, id)
  const { entriesMax, bytesMax, valueBytesMax, ttlMs, eviction } = settings
  const text = JSON.stringify({ ...settings, entriesMax: finite(entriesMax), bytesMax: finite(bytesMax) })
  return native.storeMake(id, text, entriesMax, bytesMax, valueBytesMax, ttlMs, eviction === 'hot')
}

/** JSON has no Infinity. */
function finite(bound: number): number | undefined {
  return bound === Infinity ? undefined : bound
}

function checkId(call: string, id: string): void {
  if (typeof id !== 'string' || id === '' || id.length > ID_LENGTH_MAX)
    throw wrong(`${call}: id`, `a string of 1 to ${ID_LENGTH_MAX} characters`, id)
}

function open(number: number, id = ''): Store {
  const found = number === 0 ? undefined : tryOpen(number)
  if (found === undefined) throw new StoreError('STORE_UNKNOWN', { id, known: native.storeNames(KNOWN_MAX) })
  return found
}

function tryOpen(number: number): Store | undefined {
  const known = opened.find(number)
  if (known !== undefined) return known
  thisScratch()
  const [id, settings] = [native.storeId(number), native.storeSettings(number)]
  const handle = native.storeOpen(number)
  if (id === undefined || settings === undefined || handle < 0) return undefined
  return new Store(id, number, handle, { entriesMax: Infinity, bytesMax: Infinity, ...JSON.parse(settings) })
}

interface Saved {
  readonly number: number
  readonly id: string
}

registerHandle({
  tag: 'corespun.Store',
  is: Store,
  save: (handle: Store): Saved => ({ number: Store.numberOf(handle), id: handle.id }),
  load: ({ number, id }: Saved): Store => {
    const found = tryOpen(number)
    if (found === undefined) throw new StoreError('STORE_CLOSED', { id })
    return found
  },
})
register(StoreError, { cid: 'corespun.StoreError' })
