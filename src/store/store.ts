/**
 * A store as a thread sees it.
 *
 * All state is in the native core; this object has a handle and the frozen values of `view`. Every operation
 * is synchronous and atomic, except `getOrCompute` and `watch`, which wait, and `keys`, `entries` and `size`,
 * which read one part of the store after the other.
 *
 * Over 400 lines: the hot paths share private fields with the public methods, and the engine inlines both.
 */
import { isDeepStrictEqual } from 'node:util'
import { shown } from '../base/index.ts'
import {
  CLOSED_HANDLE,
  Found,
  FoundDouble,
  Given,
  GivenDouble,
  Mode,
  Read,
  Scratch,
  Written,
  thisScratch,
  thisWaits,
} from '../bridge/index.ts'
import { HEADER_BYTES, native } from '../native/index.ts'
import { Computations } from './computing.ts'
import { StoreError, wrong } from './errors.ts'
import { type Filed, closesFile, flushFile } from './file.ts'
import { freezeRead } from './freeze.ts'
import { Opened } from './opened.ts'
import { type Changing, Entry, SET } from './entry.ts'
import {
  type ComputeOptions,
  type StoreSettings,
  type WatchOptions,
  type WriteOptions,
  ttlOf,
  watchOf,
} from './options.ts'
import { type StoreStats, statsOf } from './stats.ts'
import { TransportError, beyondTrees, toBeFrozen } from '../transport/internal.ts'
import { Views } from './views.ts'
import { Watcher } from './watcher.ts'

/** Longest key: 65,536 characters of Latin-1, or half as many of others. */
const KEY_BYTES_MAX = 65_536
/** Keys and values of these lengths fit the scratch together, whatever the width of their characters. */
const SHORT_KEY_MAX = 1024
const SHORT_VALUE_MAX = 128 * 1024

const MOVED = 'a buffer that was moved into it, which can be read once'
const NO_UNDEFINED = 'a value other than undefined (delete() deletes a key)'
const ASYNCHRONOUS_UPDATE = {
  name: 'store.update(): the function',
  verb: 'must return',
  expected: 'the new value (await before the call, or use getOrCompute())',
  received: 'a Promise',
}
const ABSENT = Symbol('absent')
/** Returned by the function of `#change` in order to write nothing. */
const KEEP = Symbol('keep')

/**
 * Constants of this module, because the engine folds these into its code. An imported binding is loaded at
 * every use, and a property of an imported object is loaded and checked: about 15 instructions for each.
 */
const CORE_HEADER = HEADER_BYTES
const { storeGet, storeView, storeRead, storeHas, storeSet, storeRemove } = native
const { handle: HANDLE, key: KEY, length: LENGTH, mode: MODE } = Given
const { status: STATUS, length: FOUND_LENGTH } = Found
const { found: FOUND, absent: NOT_FOUND, large: LARGE, closed: CLOSED } = Read
const { done: DONE } = Written

/** The result of a removal. */
const REMOVED = 0
const NOTHING = 1
const CONFLICTED = 2

/** The stores that this thread has opened. */
export const opened = new Opened<Store>()

/**
 * A map from strings to values that every thread of the process shares. Values are copied in and out, so they
 * may be anything that can be sent to another thread.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { store } from 'corespun'
 *
 * const counts = store.create<number>('counts')
 * assert.equal(counts.increment('visits'), 1)
 * assert.equal(counts.update('visits', (count = 0) => count * 10), 10)
 * assert.equal(counts.compareAndSet('visits', 9, 1), false)
 * counts.close()
 * ```
 */
export class Store<Value = unknown> {
  /** The name. */
  readonly id: string
  readonly #number: number
  /** `CLOSED_HANDLE` once this thread has found the store closed. */
  #handle: number
  readonly #settings: StoreSettings
  readonly #scratch: Scratch
  /** Frames may use numbers of this process: no file keeps them. */
  readonly #isProcess: boolean
  #views: Views | undefined
  #computations: Computations<Value> | undefined
  /** The core's version words, once a transaction has read a second key. */
  #words: Uint32Array | undefined
  /** The keys that `update` and its kin are changing now, innermost first. */
  #changing: Changing | undefined

  /** @internal */
  constructor(id: string, number: number, handle: number, settings: StoreSettings) {
    this.id = id
    this.#number = number
    this.#handle = handle
    this.#settings = settings
    this.#scratch = thisScratch()
    this.#isProcess = settings.file === undefined
    opened.keep(this, number, handle)
  }

  /** @internal */
  static numberOf(store: Store): number {
    return store.#number
  }

  /** @internal */
  static settingsOf(store: Store): StoreSettings {
    return store.#settings
  }

  /**
   * @internal Reads a key for a transaction; `isAgain` leaves the version that it has.
   * Returns false if that is another one.
   */
  static read(store: Store, entry: Entry<Store>, isAgain: boolean): boolean {
    const scratch = store.#scratch
    if (scratch.busy) return scratch.aside(Store.read, Store, [store, entry, isAgain])
    store.#putKey(entry.key, 0)
    storeRead()
    const { words } = scratch
    const status = words[STATUS]
    if (status === CLOSED) throw store.#closed()
    const isAbsent = status === NOT_FOUND
    const low = isAbsent ? 0 : words[Found.version]
    const high = isAbsent ? 0 : words[Found.versionHigh]
    if (isAgain && (low !== entry.low || high !== entry.high)) return false
    entry.low = low
    entry.high = high
    entry.index = words[Found.index]
    entry.word = words[Found.word]
    // A field that has had only small integers is not a double, which would have memory of its own.
    const leftMs = isAbsent ? 0 : scratch.doubles[FoundDouble.leftMs]
    if (leftMs !== 0) entry.leftMs = leftMs
    if (isAbsent) entry.value = undefined
    else entry.value = status === LARGE ? scratch.readLarge() : scratch.read(words[FOUND_LENGTH])
    return true
  }

  /** @internal Milliseconds until a key expires; 0: never, or it is absent. */
  static leftMs(store: Store, key: string): number {
    const entry = new Entry<Store>(store, key)
    Store.read(store, entry, false)
    return entry.leftMs
  }

  /** @internal Commits the only entry of a transaction. Returns false if its version is another one now. */
  static commit(store: Store, entry: Entry<Store>): boolean {
    const { key, low, high, mode } = entry
    if (entry.action === SET) return store.#write(key, entry.written, mode, entry.ttlMs, low, high)
    return store.#remove(key, mode, low, high) !== CONFLICTED
  }

  /** @internal Adds an entry to the steps of the next commit. */
  static step(store: Store, entry: Entry<Store>, isCheck: boolean): void {
    const scratch = store.#scratch
    if (scratch.busy) {
      scratch.aside(Store.step, Store, [store, entry, isCheck])
      return
    }
    const { key, low, high, mode, ttlMs } = entry
    if (entry.action === SET && !isCheck) {
      const length = scratch.write(entry.written, store.#isProcess)
      const large = store.#fill(key, length, mode, ttlMs, low, high)
      if (large === undefined) native.storeStep()
      else native.storeStepLarge(large)
      return
    }
    const only = entry.action === 0 || isCheck ? Mode.expects | Mode.checks : mode | Mode.removes
    store.#fill(key, 0, only, 0, low, high)
    native.storeStep()
  }

  /** @internal The error of a step that was refused for another reason than its version. */
  static refused(store: Store, status: number, key: string): StoreError {
    return store.#refused(status, key)
  }

  /** @internal The core's version words; none where external memory is not allowed. */
  static wordsOf(store: Store): Uint32Array {
    return (store.#words ??= new Uint32Array(native.storeWords(store.#handle) ?? []))
  }

  /** @internal Notifies the ticket of changes of a key. Returns the watch, -1 if the store is closed. */
  static watchKey(store: Store, key: string, ticket: number): number {
    return store.#withKey(key, () => native.storeWatch(store.#handle, ticket, false, 1))
  }

  /** @internal Until {@link Store.leave}, writes of the key outside of the transaction are refused. */
  static enter(store: Store, entry: Entry<Store>): void {
    if (store.#changing !== undefined) store.#refuseCycle(entry.key)
    entry.within = store.#changing
    store.#changing = entry
  }

  /** @internal Ends the last {@link Store.enter}. */
  static leave(store: Store): void {
    store.#changing = store.#changing?.within
  }

  /** @internal A key is checked before it is used, so that a wrong one has entered nothing. */
  static checkKey(store: Store, key: unknown): asserts key is string {
    if (typeof key !== 'string' || key.length > KEY_BYTES_MAX) throw store.#wrongKey(key)
    if (key.length > KEY_BYTES_MAX / 2 && Scratch.isWide(key)) throw store.#wrongKey(key)
  }

  /**
   * Returns a copy of the value of a key, or `undefined` if the key is absent.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   * @throws {TransportError} when this thread cannot read the value.
   */
  get(key: string): Value | undefined {
    const found = this.#find(key)
    return found === ABSENT ? undefined : (found as Value)
  }

  /**
   * Returns whether a key has a value.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   */
  has(key: string): boolean {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.has, this, [key])
    this.#putKey(key, 0)
    storeHas()
    const status = scratch.words[STATUS]
    if (status === CLOSED) throw this.#closed()
    return status === FOUND
  }

  /**
   * Returns the value of a key, deeply frozen and shared by all views of this thread, or `undefined` if the
   * key is absent. Until the key is written again, reading it costs the comparison of a version. Handles
   * (stores, locks, zones, signals) and functions in the value are not frozen, nor are the #fields of
   * registered classes: do not write these.
   * @throws {StoreError} `STORE_NOT_FREEZABLE` for a Map, Set, Date, URL, buffer, or a RegExp with `g` or
   *   `y`; `STORE_CLOSED`, `STORE_ARGUMENT`.
   * @throws {TransportError} when this thread cannot read the value.
   */
  view(key: string): Value | undefined {
    if (this.#views !== undefined && typeof key === 'string') {
      const view = this.#views.unchanged(key)
      if (view !== undefined) return view.value as Value
    }
    return this.#look(key) as Value | undefined
  }

  /**
   * Writes a value, which all threads see as soon as the call returns. `undefined` is not a value. The file
   * of a store contains it once a later `flush()` has resolved.
   * @throws {StoreError} `STORE_VALUE_TOO_LARGE`, `STORE_FULL`, `STORE_FILE_BEHIND`, `STORE_CLOSED`,
   *   `STORE_ARGUMENT`;
   *   `STORE_UPDATE_CYCLE` in the function of an `update` of that key.
   * @throws {TransportError} when the value cannot be sent; nothing is written.
   */
  set(key: string, value: Value, options?: WriteOptions): void {
    if (value === undefined) throw wrong('store.set(): value', NO_UNDEFINED, value)
    if (this.#changing !== undefined) this.#refuseCycle(key)
    const ttlMs = options === undefined ? 0 : ttlOf('store.set()', options)
    if (ttlMs > 0) this.#write(key, value, Mode.hasTtl, ttlMs)
    else if (typeof key === 'string' && key.length <= SHORT_KEY_MAX && !this.#scratch.busy)
      this.#put(key, value)
    else this.#write(key, value)
  }

  /**
   * Deletes a key and returns whether it had a value.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`, `STORE_UPDATE_CYCLE`.
   */
  delete(key: string): boolean {
    if (this.#changing !== undefined) this.#refuseCycle(key)
    return this.#remove(key) === REMOVED
  }

  /**
   * Writes `value` if the current value equals `expected` (`util.isDeepStrictEqual`), and returns whether it
   * did. An `expected` of `undefined` matches an absent key; a `value` of `undefined` deletes the key. The
   * entry keeps its expiration time unless `ttlMs` is set. The current value is read, so a buffer moved into
   * it is consumed.
   * @throws {StoreError} as `set`.
   * @throws {TransportError} when a value cannot be sent or read.
   */
  compareAndSet(
    key: string,
    expected: Value | undefined,
    value: Value | undefined,
    options?: WriteOptions,
  ): boolean {
    let done = false
    this.#change(
      'store.compareAndSet()',
      key,
      (old) => {
        done = isDeepStrictEqual(old, expected)
        return done ? value : KEEP
      },
      options,
    )
    return done
  }

  /**
   * Replaces the value with the result of `fn` and returns it. `fn` receives `undefined` for an absent key,
   * and deletes the key by returning `undefined`. It runs again if another thread writes the key in between,
   * so it should have no side effects. If it throws, nothing is written; a buffer moved into the value is
   * consumed. The entry keeps its expiration time unless `ttlMs` is set.
   * @throws {StoreError} as `set`; `STORE_UPDATE_CYCLE` when `fn` writes or deletes the key.
   * @throws {TransportError} when a value cannot be sent or read.
   * @throws whatever `fn` throws.
   */
  update(
    key: string,
    fn: (value: Value | undefined) => Value | undefined,
    options?: WriteOptions,
  ): Value | undefined {
    if (typeof fn !== 'function') throw wrong('store.update(): the second argument', 'a function', fn)
    try {
      return this.#change('store.update()', key, fn as (value: unknown) => unknown, options) as
        | Value
        | undefined
    } catch (error) {
      throw isPromiseRefused(error) ? new StoreError('STORE_ARGUMENT', ASYNCHRONOUS_UPDATE) : error
    }
  }

  /**
   * Adds `by` (default 1) to a number, 0 for an absent key, and returns the sum.
   * @throws {StoreError} `STORE_NOT_NUMBER` when the stored value is not a finite number or the sum is not
   *   finite, `STORE_ARGUMENT` when `by` is not finite, and as `set`.
   */
  increment(key: string, by = 1, options?: WriteOptions): number {
    if (!Number.isFinite(by)) throw wrong('store.increment(): by', 'a finite number', by)
    return this.#change(
      'store.increment()',
      key,
      (old) => {
        if (old === undefined) return by
        const isNumber = typeof old === 'number' && Number.isFinite(old)
        if (isNumber && Number.isFinite(old + by)) return old + by
        const received = isNumber ? `${old}, whose sum with ${by} is not finite` : shown(old)
        throw new StoreError('STORE_NOT_NUMBER', { id: this.id, key: shown(key), received })
      },
      options,
    ) as number
  }

  /**
   * Returns the value of a key. For an absent key, computes the value with `fn` and writes it unless it is
   * `undefined`. Only one call in the process computes a key at a time, and the others wait for it; if it
   * fails, returns `undefined` or its thread ends, one of the others computes.
   * @throws {StoreError} `STORE_COMPUTE_CYCLE` when `fn` asks for the key it computes; and as `set`.
   * @throws whatever `fn` throws, in the call that passed it.
   */
  async getOrCompute(
    key: string,
    fn: (key: string) => Value | Promise<Value>,
    options?: ComputeOptions,
  ): Promise<Value> {
    this.#computations ??= new Computations<Value>(this.id, this.#number, {
      find: (of) => this.#find(of),
      absent: ABSENT,
      write: (of, value, mode, ttlMs) => this.#write(of, value, mode, ttlMs),
      begin: (of, ticket) => this.#withKey(of, () => native.storeBegin(this.#handle, ticket)) === 0,
      end: (of, ticket, succeeded) =>
        this.#withKey(of, () => native.storeEnd(this.#handle, ticket, succeeded)),
    })
    return this.#computations.of(key, fn, options)
  }

  /**
   * Returns the changes of a key, or of all keys with a prefix, from now on as an async iterable. An
   * expiration is reported when a later write, `size`, `stats` or `keys` removes the entry.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   */
  watch(what: string | { readonly prefix: string }, options?: WatchOptions): Watcher {
    const { eventsMax, signal } = watchOf(options)
    const isPrefix = typeof what !== 'string'
    const key = isPrefix ? (what as { readonly prefix: string } | null | undefined)?.prefix : what
    if (typeof key !== 'string') throw wrong('store.watch(): the first argument', 'a key or { prefix }', what)
    const open = (ticket: number): number =>
      this.#withKey(key, () => native.storeWatch(this.#handle, ticket, isPrefix, eventsMax))
    this.#checkOpen()
    return new Watcher(thisWaits(), open, signal)
  }

  /** Number of entries. @throws {StoreError} `STORE_CLOSED`. */
  get size(): number {
    return this.stats().entries
  }

  /**
   * Iterates over the keys in no particular order. Keys written or deleted meanwhile may be missing or
   * present.
   * @throws {StoreError} `STORE_CLOSED`.
   */
  *keys(): IterableIterator<string> {
    this.#checkOpen()
    const parts = native.storeParts(this.#handle)
    for (let part = 0; part < parts; part++) {
      const bytes = native.storeKeys(this.#handle, part)
      const view = new DataView(bytes.buffer)
      for (let at = 0; at < bytes.length;) {
        const start = at + 4
        at = start + view.getUint32(at, true)
        yield Scratch.keyOf(bytes, start, at)
      }
    }
  }

  /**
   * Iterates over the entries in no particular order; each value is read when the iteration reaches it.
   * @throws {StoreError} `STORE_CLOSED`.
   * @throws {TransportError} when this thread cannot read a value.
   */
  *entries(): IterableIterator<[string, Value]> {
    for (const key of this.keys()) {
      const value = this.#find(key)
      if (value !== ABSENT) yield [key, value as Value]
    }
  }

  /** As `entries`. */
  [Symbol.iterator](): IterableIterator<[string, Value]> {
    return this.entries()
  }

  /** Deletes all entries atomically. @throws {StoreError} `STORE_CLOSED`. */
  clear(): void {
    this.#checkOpen()
    native.storeClear(this.#handle)
    this.#views = undefined
  }

  /** Returns statistics. @throws {StoreError} `STORE_CLOSED`. */
  stats(): StoreStats {
    this.#checkOpen()
    return statsOf(this.#handle)
  }

  /**
   * Resolves when the store's file contains every change that any thread had made before this call, also
   * after a crash of the process or the machine. Calls that wait together share one sync of the disk.
   * Without a file it resolves at once.
   * @throws {StoreError} `STORE_FILE_REMOVED`, `STORE_DISK_FULL`, `STORE_FILE_FAILED`, `STORE_FILE_IN_USE`:
   *   the changes are in memory, and the next `flush()` tries again; `STORE_CLOSED`.
   */
  async flush(): Promise<void> {
    this.#checkOpen()
    if (!this.#isProcess) await flushFile(this.#filed())
  }

  /**
   * Deletes all entries from memory and frees the name. Every later call, in any thread, throws
   * `STORE_CLOSED`. A file keeps its entries: the call blocks until it has the last changes and is closed,
   * which `await store.flush()` before it makes short.
   * @throws {StoreError} as `flush`, when the last changes could not be written: they are lost.
   */
  close(): void {
    native.storeClose(this.#number)
    try {
      if (!this.#isProcess && this.#handle !== CLOSED_HANDLE) closesFile(this.#filed())
    } finally {
      this.#letGo()
    }
  }

  /** As `close`. */
  [Symbol.dispose](): void {
    this.close()
  }

  /** Flushes and closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (!this.#isProcess && native.storeId(this.#number) !== undefined) await this.flush()
    } finally {
      this.close()
    }
  }

  #find(key: string): unknown {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#find, this, [key])
    if (typeof key === 'string' && key.length <= SHORT_KEY_MAX) {
      const { given } = scratch
      given[HANDLE] = this.#handle
      given[KEY] = scratch.putKey(key, CORE_HEADER)
      given[LENGTH] = 0
    } else this.#putKey(key, 0)
    storeGet()
    const status = scratch.words[STATUS]
    if (status === FOUND) return scratch.read(scratch.words[FOUND_LENGTH])
    if (status === LARGE) return scratch.readLarge()
    if (status === NOT_FOUND) return ABSENT
    throw this.#closed()
  }

  #look(key: string): unknown {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#look, this, [key])
    const views = (this.#views ??= this.#openViews())
    const view = views.last(key)
    const now = performance.now()
    this.#putKey(key, 0)
    const { given, words } = scratch
    given[Given.looks] = view === undefined ? 0 : view.looks
    given[Given.version] = view === undefined ? 0 : view.version
    given[Given.versionHigh] = view === undefined ? 0 : view.versionHigh
    words[Found.refers] = 0
    storeView()
    const status = words[STATUS]
    if (view !== undefined) view.looks = 0
    if (status === CLOSED) {
      throw this.#closed()
    }
    if (status === NOT_FOUND) {
      views.forget(key)
      return undefined
    }
    const [version, versionHigh] = [words[Found.version], words[Found.versionHigh]]
    const [index, word] = [words[Found.index], words[Found.word]]
    const leftMs = scratch.doubles[FoundDouble.leftMs]
    // The core counts whole milliseconds, so this deadline is one earlier and never later.
    const deadline = leftMs === 0 ? 0 : now + leftMs - 1
    if (view !== undefined && view.version === version && view.versionHigh === versionHigh) {
      view.word = word
      view.deadline = deadline
      views.keep(key, view)
      return view.value
    }
    const bytes = words[FOUND_LENGTH]
    if (words[Found.refers] === 1 && native.scratchMoves() === 1) {
      if (status === LARGE) native.scratchLarge()
      // Reading it would consume the buffer.
      throw new StoreError('STORE_NOT_FREEZABLE', {
        id: this.id,
        key: shown(key),
        path: 'value',
        what: MOVED,
      })
    }
    const beyond = beyondTrees.count
    const numbers: object[] = []
    const value = this.#readToFreeze(numbers, status === LARGE, bytes)
    const unfreezable = freezeRead(value, bytes, beyondTrees.count === beyond, numbers)
    if (unfreezable !== undefined)
      throw new StoreError('STORE_NOT_FREEZABLE', { id: this.id, key: shown(key), ...unfreezable })
    views.keep(key, { value, index, word, version, versionHigh, deadline, bytes, looks: 0 })
    return value
  }

  #readToFreeze(numbers: object[], isLarge: boolean, bytes: number): unknown {
    toBeFrozen.numbers = numbers
    try {
      return isLarge ? this.#scratch.readLarge() : this.#scratch.read(bytes)
    } finally {
      toBeFrozen.numbers = undefined
    }
  }

  #openViews(): Views {
    return new Views(new Uint32Array(native.storeWords(this.#handle) ?? []))
  }

  /** Reads, changes and writes, and starts again if another thread has written in between. */
  #change(
    call: string,
    key: string,
    change: (old: unknown) => unknown,
    options: WriteOptions | undefined,
  ): unknown {
    const ttlMs = ttlOf(call, options)
    const mode = Mode.expects | (ttlMs > 0 ? Mode.hasTtl : Mode.keepsTtl)
    const within = this.#changing
    if (within !== undefined) this.#refuseCycle(key)
    this.#changing = { key, within }
    try {
      for (;;) {
        const [low, high, old] = this.#findVersion(key)
        const value = change(old === ABSENT ? undefined : old)
        if (value === KEEP) return undefined
        if (value !== undefined) {
          if (this.#write(key, value, mode, ttlMs, low, high)) return value
        } else if (old === ABSENT || this.#remove(key, Mode.expects, low, high) !== CONFLICTED) {
          return undefined
        }
      }
    } finally {
      this.#changing = within
    }
  }

  /** A function that changes a key, or a hook that it runs, must not write that key: it would run forever. */
  #refuseCycle(key: string): void {
    for (let at = this.#changing; at !== undefined; at = at.within) {
      if (at.key !== key) continue
      const facts = { id: this.id, key: shown(key) }
      throw new StoreError('STORE_UPDATE_CYCLE', at instanceof Entry ? { ...facts, isAtomic: true } : facts)
    }
  }

  #findVersion(key: string): [number, number, unknown] {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#findVersion, this, [key])
    this.#putKey(key, 0)
    storeGet()
    const { words } = scratch
    const status = words[STATUS]
    const [low, high] = [words[Found.version], words[Found.versionHigh]]
    if (status === FOUND) return [low, high, scratch.read(words[FOUND_LENGTH])]
    if (status === LARGE) return [low, high, scratch.readLarge()]
    if (status === NOT_FOUND) return [0, 0, ABSENT]
    throw this.#closed()
  }

  /** Returns false if another version was there than expected. */
  #write(key: string, value: unknown, mode = 0, ttlMs = 0, low = 0, high = 0): boolean {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#write, this, [key, value, mode, ttlMs, low, high])
    if (typeof key !== 'string' || key.length > KEY_BYTES_MAX) throw this.#wrongKey(key)
    // Checked first: attachments of a value that is written and not sent would go to the next one.
    if (key.length > KEY_BYTES_MAX / 2 && Scratch.isWide(key)) throw this.#wrongKey(key)
    return this.#send(key, scratch.write(value, this.#isProcess), mode, ttlMs, low, high)
  }

  /**
   * The common write: a short key, no version and no TTL. Small enough for the engine to inline, hence the
   * copy of `#putKey` here and in `#find`: calling it costs 25 ns.
   */
  #put(key: string, value: Value): void {
    const scratch = this.#scratch
    const length = scratch.write(value, this.#isProcess)
    if (length < 0 || length > SHORT_VALUE_MAX) {
      this.#send(key, length)
      return
    }
    const { given } = scratch
    given[HANDLE] = this.#handle
    given[KEY] = scratch.putKey(key, CORE_HEADER + length)
    given[LENGTH] = length
    given[MODE] = 0
    storeSet()
    const status = scratch.words[STATUS]
    if (status !== DONE) throw this.#refused(status, key)
    scratch.letGo()
  }

  /** As `#write`, for the value that is in the scratch. */
  #send(key: string, written: number, mode = 0, ttlMs = 0, low = 0, high = 0): boolean {
    const scratch = this.#scratch
    const large = this.#fill(key, written, mode, ttlMs, low, high)
    if (large === undefined) storeSet()
    else native.storeSetLarge(large)
    const status = scratch.words[STATUS]
    if (status === DONE) {
      scratch.letGo()
      return true
    }
    if (status === Written.conflict) return false
    throw this.#refused(status, key)
  }

  /** The words of a write, of the value that is in the scratch; returns the value if it does not fit. */
  #fill(
    key: string,
    written: number,
    mode: number,
    ttlMs: number,
    low: number,
    high: number,
  ): Uint8Array | undefined {
    const scratch = this.#scratch
    let length = written
    const { given } = scratch
    let large = length < 0 ? scratch.overflow : undefined
    if (length + CORE_HEADER + key.length * 2 + 1 > scratch.out.length) {
      large = scratch.out.slice(CORE_HEADER, CORE_HEADER + length)
    }
    if (large !== undefined) length = 0
    this.#putKey(key, length)
    given[MODE] = mode
    if (mode !== 0) {
      given[Given.version] = low
      given[Given.versionHigh] = high
      scratch.givenDoubles[GivenDouble.ttlMs] = ttlMs
    }
    if (large !== undefined) scratch.overflow = undefined
    return large
  }

  /** Returns REMOVED, NOTHING or CONFLICTED. */
  #remove(key: string, mode = 0, low = 0, high = 0): number {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#remove, this, [key, mode, low, high])
    this.#putKey(key, 0)
    const { given } = scratch
    given[MODE] = mode
    given[Given.version] = low
    given[Given.versionHigh] = high
    storeRemove()
    const status = scratch.words[STATUS]
    if (status === Written.closed) throw this.#closed()
    if (status !== DONE) return CONFLICTED
    return scratch.words[Found.removed] === 1 ? REMOVED : NOTHING
  }

  /** Writes handle, key and lengths for the core. The `length` bytes of the value precede the key. */
  #putKey(key: string, length: number): void {
    const scratch = this.#scratch
    if (typeof key !== 'string' || key.length > KEY_BYTES_MAX) throw this.#wrongKey(key)
    const word = scratch.putKey(key, CORE_HEADER + length)
    // For a long key the word is its length.
    if (key.length > KEY_BYTES_MAX / 2 && word > KEY_BYTES_MAX + 1) throw this.#wrongKey(key)
    const { given } = scratch
    given[HANDLE] = this.#handle
    given[KEY] = word
    given[LENGTH] = length
  }

  #withKey<Result>(key: string, body: () => Result): Result {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#withKey, this, [key, body])
    this.#putKey(key, 0)
    return body()
  }

  #filed(): Filed {
    return { id: this.id, handle: this.#handle, settings: this.#settings }
  }

  #checkOpen(): void {
    if (native.storeId(this.#number) === undefined) throw this.#closed()
  }

  /** Releases the memory of a closed store now, before this object is collected. */
  #letGo(): void {
    if (this.#handle === CLOSED_HANDLE) return
    opened.letGo(this, this.#number, this.#handle)
    this.#handle = CLOSED_HANDLE
    this.#views = undefined
  }

  #closed(): StoreError {
    this.#letGo()
    return new StoreError('STORE_CLOSED', { id: this.id })
  }

  #refused(status: number, key: string): StoreError {
    const { entriesMax, bytesMax, valueBytesMax } = this.#settings
    if (status === Written.full) return new StoreError('STORE_FULL', { id: this.id, entriesMax, bytesMax })
    if (status === Written.behind) {
      const { file = '', unflushedBytesMax } = this.#settings
      return new StoreError('STORE_FILE_BEHIND', { id: this.id, file, bytesMax: unflushedBytesMax })
    }
    if (status !== Written.tooLarge) return this.#closed()
    return new StoreError('STORE_VALUE_TOO_LARGE', { id: this.id, key: shown(key), bytesMax: valueBytesMax })
  }

  #wrongKey(key: unknown): StoreError {
    const received = typeof key === 'string' ? `a string of ${key.length} characters` : shown(key)
    const expected = `a string of at most ${KEY_BYTES_MAX} bytes`
    return new StoreError('STORE_ARGUMENT', { name: `a key of the store '${this.id}'`, expected, received })
  }
}

/** Whether a value was refused because it is a promise. */
function isPromiseRefused(error: unknown): boolean {
  if (!(error instanceof TransportError) || error.code !== 'TRANSPORT_REFUSED') return false
  const { path, what } = error.facts as { readonly path: string; readonly what: string }
  return path === 'value' && what === 'a Promise'
}
