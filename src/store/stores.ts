/**
 * The stores of the process by name.
 *
 * A store travels to another thread as its number; a thread has one object per store.
 */
import { checkSame, effects } from '../base/index.ts'
import { thisScratch } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { register, registerHandle } from '../transport/internal.ts'
import { StoreError, wrong } from './errors.ts'
import { type Filed, opensFile } from './file.ts'
import { type StoreOptions, type StoreSettings, parseOptions } from './options.ts'
import { type Shared, type ShareOptions, share } from './share/share.ts'
import { Store, opened } from './store.ts'

const ID_LENGTH_MAX = 256
/** Most names that an error lists. */
const KNOWN_MAX = 10

/**
 * The stores of this process. A store belongs to no thread: it stays open until it is closed or the process
 * ends; with `weak`, until no thread has a reference to it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { store } from 'corespun'
 *
 * const sessions = store.create<{ user: string }>('sessions', { entriesMax: 10_000, ttlMs: 60_000 })
 * sessions.set('a1', { user: 'Ada' })
 * assert.deepEqual(store.get('sessions').get('a1'), { user: 'Ada' })
 * sessions.close()
 * ```
 */
export const store = {
  /**
   * Creates a store with a name of 1 to 256 characters. With `file` it has the entries of that file, all
   * loaded when the call returns.
   * @throws {StoreError} `STORE_EXISTS` when a store has that name; `STORE_ARGUMENT`. With `file`:
   *   `STORE_FILE_IN_USE`, `STORE_FILE_FOLDER_MISSING`, `STORE_FILE_DENIED`, `STORE_FILE_FOREIGN`,
   *   `STORE_FILE_CORRUPT`, `STORE_FILE_VERSION`, `STORE_DISK_FULL`, `STORE_FILE_FAILED`; `STORE_FULL` and
   *   `STORE_VALUE_TOO_LARGE` when what it contains exceeds a limit and may not be evicted.
   */
  create<Value = unknown>(id: string, options: StoreOptions = {}): Store<Value> {
    const { settings, created } = asked(options, 'store.create()')
    for (;;) {
      const number = make('store.create()', id, settings)
      if (number === 0) throw new StoreError('STORE_EXISTS', { id })
      const found = settings.weak ? tryOpen(number) : open(number, id)
      // Absent when another thread has opened and dropped it in between.
      if (found !== undefined) return created(found) as Store<Value>
    }
  },

  /**
   * Returns the store that any thread has created with that name.
   * @throws {StoreError} `STORE_UNKNOWN` when no store has that name; `STORE_ARGUMENT`.
   */
  get<Value = unknown>(id: string): Store<Value> {
    checkId('store.get()', id)
    return open(native.storeNumber(id), id) as Store<Value>
  },

  /**
   * Returns the store with that name, and creates it if necessary. The options must be those of an existing
   * store; those that are absent are not compared.
   * @throws {StoreError} `STORE_ARGUMENT`, also for an option that differs from that of the existing store;
   *   with `file`, as `create`.
   */
  getOrCreate<Value = unknown>(id: string, options: StoreOptions = {}): Store<Value> {
    const { settings, created, compared } = asked(options, 'store.getOrCreate()')
    checkId('store.getOrCreate()', id)
    for (;;) {
      const known = native.storeNumber(id)
      const found = tryOpen(known || make('store.getOrCreate()', id, settings))
      // Absent when another thread has created or closed it in between.
      if (found === undefined) continue
      if (known === 0) return created(found) as Store<Value>
      checkSame(
        'store.getOrCreate()',
        `the store "${id}"`,
        compared,
        settings,
        Store.settingsOf(found),
        wrong,
      )
      return found as Store<Value>
    }
  },

  /**
   * Copies a value into shared memory, once, and returns a view of it that reads fields in place. A view is
   * sent to other threads as a reference, in arguments, results and values of stores; parts of it too. It
   * behaves like a deeply frozen value: records with known fields, lists, typed arrays (as lists of numbers),
   * strings, numbers, booleans, bigints of 64 bits, dates, `null`, `undefined`. The memory is freed when no
   * thread has a view, and no store or message contains one. A date is a new object at each look.
   * @throws {StoreError} `STORE_NOT_SHAREABLE`, with the path, for any other part; `STORE_SHARE_TOO_LARGE`
   *   beyond `bytesMax`; `STORE_ARGUMENT`.
   *
   * @example
   * ```ts
   * import assert from 'node:assert/strict'
   * import { store } from 'corespun'
   *
   * const prices = store.share([
   *   { sku: 'tea', cents: 250, tags: ['hot'] },
   *   { sku: 'ice', cents: 300, tags: ['cold', 'new'] },
   * ])
   * assert.equal(prices.at(1)?.tags.at(-1), 'new')
   * assert.deepEqual(prices.map((price) => price.cents), [250, 300])
   * ```
   */
  share<T extends object>(value: T, options?: ShareOptions): Shared<T> {
    return share(value, options)
  },

  /** Number of open stores. */
  get count(): number {
    return native.storeCount()
  },
}

/**
 * What is asked for, which options an existing store must have, and what is done with a new one. Files of a
 * run are the run's; that of a store from before it is a real one.
 */
function asked(options: StoreOptions, call: string) {
  const settings = parseOptions(options, call)
  const seeded = effects.seeded?.()
  if (seeded === undefined) return { settings, compared: options, created: (made: Store) => made }
  const created = (made: Store): Store => (seeded.created(made, settings.file), made)
  const file = { file: undefined }
  return { settings: { ...settings, ...file }, compared: { ...options, ...file }, created }
}

function make(call: string, id: string, settings: StoreSettings): number {
  checkId(call, id)
  const {
    entriesMax,
    bytesMax,
    valueBytesMax,
    ttlMs,
    eviction,
    file = '',
    unflushedBytesMax,
    weak,
  } = settings
  const numbers = [entriesMax, bytesMax, valueBytesMax, ttlMs, unflushedBytesMax, Number(weak)]
  const limits = Float64Array.from(numbers)
  const text = JSON.stringify({ ...settings, entriesMax: finite(entriesMax), bytesMax: finite(bytesMax) })
  const isSeeded = effects.seeded?.() !== undefined
  return native.storeMake(id, text, new Uint8Array(limits.buffer), eviction === 'lru', file, isSeeded)
}

/** JSON has no Infinity. */
function finite(limit: number): number | undefined {
  return limit === Infinity ? undefined : limit
}

function checkId(call: string, id: string): void {
  if (typeof id !== 'string' || id === '' || id.length > ID_LENGTH_MAX)
    throw wrong(`${call}: id`, `a string of 1 to ${ID_LENGTH_MAX} characters`, id)
}

function open(number: number, id: string): Store {
  const found = tryOpen(number)
  if (found === undefined) throw new StoreError('STORE_UNKNOWN', { id, known: native.storeNames(KNOWN_MAX) })
  return found
}

function tryOpen(number: number): Store | undefined {
  if (number === 0) return undefined
  const known = opened.find(number)
  if (known !== undefined) return known
  thisScratch()
  const [id, text] = [native.storeId(number), native.storeSettings(number)]
  const handle = native.storeOpen(number)
  if (id === undefined || text === undefined || handle < 0) return undefined
  const settings: StoreSettings = { entriesMax: Infinity, bytesMax: Infinity, ...JSON.parse(text) }
  return isOpen(number, { id, handle, settings }) ? new Store(id, number, handle, settings) : undefined
}

/** Wait until the file of a store is open. One that cannot be opened is closed, and its name is free. */
function isOpen(number: number, store: Filed): boolean {
  if (store.settings.file === undefined) return true
  let opens = false
  try {
    opens = opensFile(store)
  } finally {
    if (!opens) {
      native.storeClose(number)
      native.storeDrop(store.handle)
    }
  }
  return opens
}

interface SavedStore {
  readonly number: number
  readonly id: string
}

registerHandle({
  tag: 'corespun.Store',
  is: Store,
  save: (handle: Store): SavedStore => ({ number: Store.numberOf(handle), id: handle.id }),
  load: ({ number, id }: SavedStore): Store => {
    const found = tryOpen(number)
    if (found === undefined) throw new StoreError('STORE_CLOSED', { id })
    return found
  },
})
register(StoreError, { cid: 'corespun.StoreError' })
