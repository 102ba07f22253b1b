/**
 * A store as a thread sees it: the API.
 *
 * All state is in the native core; this object keeps a handle, and the values that `view` has frozen. Every
 * operation is synchronous and happens at one moment for all threads, except `getOrCompute` and `watch`,
 * which wait, and `keys`, `entries` and `size`, which look at the parts of the store one after the other.
 */
import { isDeepStrictEqual } from 'node:util'
import { abortSignal, integer, optionsOf, shown } from '../base/index.ts'
import { HEADER_BYTES, native } from '../native/index.ts'
import {
  CLOSED_HANDLE,
  Counts,
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
import { Computations } from './computing.ts'
import { StoreError, wrong } from './errors.ts'
import { deepFreeze } from './freeze.ts'
import { Opened } from './opened.ts'
import { type Settings, ttlOf } from './settings.ts'
import type { ComputeOptions, StoreStats, WriteOptions } from './terms.ts'
import { Views } from './views.ts'
import { Watch, type WatchOptions } from './watch.ts'

/** Longest key: 65,536 characters of Latin-1, or half as many of others. */
const KEY_BYTES_MAX = 65_536
const EVENTS_MAX = 1024
/** Keys and values with which the scratch is never full, however wide the characters. */
const SHORT_KEY_MAX = 1024
const SHORT_VALUE_MAX = 128 * 1024

const MOVED = 'a buffer that was moved into it, which can be read once'
const ABSENT = Symbol('absent')
/** Constants of this module: the engine calls them directly. */
const { storeGet, storeView, storeHas, storeSet, storeRemove } = native

/** What became of a removal. */
const REMOVED = 0
const NOTHING = 1
const CONFLICTED = 2

/** Those that this thread has opened. */
export const opened = new Opened<Store>()

/** A process-wide map from strings to values that the transport can carry. */
export class Store<Value = unknown> {
  /** Its name. */
  readonly id: string
  readonly #number: number
  /** Of a store that this thread has found closed, the handle that is. */
  #handle: number
  readonly #settings: Settings
  readonly #scratch: Scratch
  #views: Views | undefined
  #computations: Computations<Value> | undefined
  /** The keys that `update` and its kin are changing now, innermost first. */
  #changing: Changing | undefined

  /** Use `store.create`, `store.get` or `store.getOrCreate`. @internal */
  constructor(id: string, number: number, handle: number, settings: Settings) {
    this.id = id
    this.#number = number
    this.#handle = handle
    this.#settings = settings
    this.#scratch = thisScratch()
    opened.keep(this, number, handle)
  }

  /** Its number in the process. @internal */
  static numberOf(store: Store): number {
    return store.#number
  }

  /**
   * The value of a key, as a copy of the reader's own; `undefined` when there is none.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   * @throws {TransportError} when this thread cannot read the value.
   */
  get(key: string): Value | undefined {
    const found = this.#find(key)
    return found === ABSENT ? undefined : (found as Value)
  }

  /**
   * Whether there is a value.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   */
  has(key: string): boolean {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.has, this, [key])
    this.#putKey(key, 0)
    storeHas()
    const status = scratch.words[Found.status]
    if (status === Read.closed) throw this.#closed()
    return status === Read.found
  }

  /**
   * The value of a key, deeply frozen and shared by all views of this thread: as long as nobody has written
   * the key, reading it again costs a look at a version. `undefined` when there is none. Handles (stores,
   * locks, zones, signals) and functions in it are this thread's own and stay as they are; what a registered
   * class keeps in #fields cannot be frozen and must not be written by those who have a view.
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
   * Write a value; readers see it as soon as this returns. `undefined`, which means that there is no value,
   * is refused.
   * @throws {StoreError} `STORE_VALUE_TOO_LARGE`, `STORE_FULL`, `STORE_CLOSED`, `STORE_ARGUMENT`,
   *   `STORE_SETTING`; `STORE_UPDATE_CYCLE` from a function that makes the key's new value.
   * @throws {TransportError} when the value cannot be carried; nothing was written.
   */
  set(key: string, value: Value, options?: WriteOptions): void {
    if (value === undefined) throw wrong('store.set(): value', NO_UNDEFINED, value)
    if (this.#changing !== undefined) this.#refuseCycle(key)
    const ttlMs = options === undefined ? 0 : ttlOf('store.set()', options)
    if (ttlMs > 0) this.#write(key, value, Mode.hasTtl, 0, 0, ttlMs)
    else if (typeof key === 'string' && key.length <= SHORT_KEY_MAX && !this.#scratch.busy)
      this.#put(key, value)
    else this.#write(key, value, 0, 0, 0, 0)
  }

  /**
   * Delete a key; whether it had a value.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`, `STORE_UPDATE_CYCLE`.
   */
  delete(key: string): boolean {
    if (this.#changing !== undefined) this.#refuseCycle(key)
    return this.#remove(key, 0, 0, 0) === REMOVED
  }

  /**
   * Write `value` if the key has `expected`: equal as `util.isDeepStrictEqual` says. `undefined` means no
   * value: as `expected` an absent key, as `value` that the key is deleted. The entry keeps its life unless
   * one is given. Returns whether it was written. What is there is read: a buffer that was moved into it is
   * taken by that, whatever follows.
   * @throws {StoreError} as `set`.
   * @throws {TransportError} when a value cannot be carried or read.
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
   * Replace the value by what `fn` makes of it; `undefined` in or out: no value. `fn` runs again when another
   * thread wrote in between, so it should do nothing else; when it throws, nothing has changed, but a buffer
   * that was moved into the value has been read, which can be done once. The entry keeps its life unless one
   * is given. Returns the new value.
   * @throws {StoreError} as `set`; `STORE_UPDATE_CYCLE` when `fn` writes or deletes the key itself, which
   *   would make it run again for ever.
   * @throws {TransportError} when a value cannot be carried or read.
   */
  update(
    key: string,
    fn: (value: Value | undefined) => Value | undefined,
    options?: WriteOptions,
  ): Value | undefined {
    return this.#change('store.update()', key, fn as (value: unknown) => unknown, options) as
      Value | undefined
  }

  /**
   * Add to a number, which is 0 where there is none. Returns the sum.
   * @throws {StoreError} `STORE_NOT_NUMBER`, `STORE_ARGUMENT` when `by` is not finite, and as `set`.
   */
  increment(key: string, by = 1, options?: WriteOptions): number {
    if (!Number.isFinite(by)) throw wrong('store.increment(): by', 'a finite number', by)
    return this.#change(
      'store.increment()',
      key,
      (old) => {
        if (old === undefined) return by
        if (typeof old === 'number') return old + by
        throw new StoreError('STORE_NOT_NUMBER', { id: this.id, key: shown(key), received: shown(old) })
      },
      options,
    ) as number
  }

  /**
   * The value of a key; where there is none, what `fn` makes, which is written unless it is `undefined`: then
   * there is still no value, and the next call computes it again. Across all threads one call computes a key
   * at a time and the others wait for it; if it fails, makes `undefined` or its thread ends, one of the
   * others takes over.
   * @throws {StoreError} `STORE_COMPUTE_CYCLE` when `fn` asks for the key it computes; and as `set`.
   * @throws whatever `fn` throws, to the call whose `fn` it was.
   */
  async getOrCompute(
    key: string,
    fn: (key: string) => Value | Promise<Value>,
    options?: ComputeOptions,
  ): Promise<Value> {
    this.#computations ??= new Computations<Value>(this.id, this.#number, {
      find: (of) => this.#find(of),
      absent: ABSENT,
      write: (of, value, mode, ttlMs) => this.#write(of, value, mode, 0, 0, ttlMs),
      begin: (of, ticket) => this.#withKey(of, () => native.storeBegin(this.#handle, ticket)) === 0,
      end: (of, ticket, well) => this.#withKey(of, () => native.storeEnd(this.#handle, ticket, well)),
    })
    return this.#computations.of(key, fn, options)
  }

  /**
   * What happens to a key, or to all that begin with a prefix, from now on. That an entry has ended is told
   * when a later write, `size`, `stats` or `keys` finds it.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`.
   */
  watch(what: string | { readonly prefix: string }, options?: WatchOptions): Watch {
    const { eventsMax, signal } = optionsOf(options, WATCH, wrong, 'store.watch()')
    const isPrefix = typeof what !== 'string'
    const key = isPrefix ? (what as { readonly prefix: string } | null | undefined)?.prefix : what
    if (typeof key !== 'string') throw wrong('store.watch(): the first argument', 'a key or { prefix }', what)
    const open = (ticket: number): number =>
      this.#withKey(key, () => native.storeWatch(this.#handle, ticket, isPrefix, eventsMax))
    this.#checkOpen()
    return new Watch(thisWaits(), open, signal)
  }

  /** Number of entries. @throws {StoreError} `STORE_CLOSED`. */
  get size(): number {
    return this.stats().entries
  }

  /**
   * The keys, in no order; those written or deleted meanwhile may or may not be among them.
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
   * The entries, in no order; each as it is when it is its turn.
   * @throws {StoreError} `STORE_CLOSED`.
   * @throws {TransportError} when this thread cannot read a value.
   */
  *entries(): IterableIterator<[string, Value]> {
    for (const key of this.keys()) {
      const value = this.#find(key)
      if (value !== ABSENT) yield [key, value as Value]
    }
  }

  /** The entries. */
  [Symbol.iterator](): IterableIterator<[string, Value]> {
    return this.entries()
  }

  /** Delete everything, at one moment. @throws {StoreError} `STORE_CLOSED`. */
  clear(): void {
    this.#checkOpen()
    native.storeClear(this.#handle)
    this.#views = undefined
  }

  /** What it has done. @throws {StoreError} `STORE_CLOSED`. */
  stats(): StoreStats {
    this.#checkOpen()
    const numbers = new Float64Array(Counts.numbers)
    native.storeStats(this.#handle, new Uint8Array(numbers.buffer))
    return {
      entries: numbers[Counts.entries],
      bytes: numbers[Counts.bytes],
      hits: numbers[Counts.hits],
      misses: numbers[Counts.misses],
      evictions: numbers[Counts.evictions],
      expirations: numbers[Counts.expirations],
    }
  }

  /** Delete everything and forget the name; every other use, in any thread, is refused from then on. */
  close(): void {
    native.storeClose(this.#number)
    this.#letGo()
  }

  /** Close it. */
  [Symbol.dispose](): void {
    this.close()
  }

  /** Close it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  #find(key: string): unknown {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#find, this, [key])
    if (typeof key === 'string' && key.length <= SHORT_KEY_MAX) {
      const { given } = scratch
      given[Given.handle] = this.#handle
      given[Given.key] = scratch.putKey(key, HEADER_BYTES)
      given[Given.length] = 0
    } else this.#putKey(key, 0)
    storeGet()
    const status = scratch.words[Found.status]
    if (status === Read.found) return scratch.read(scratch.words[Found.length])
    if (status === Read.large) return scratch.readLarge()
    if (status === Read.absent) return ABSENT
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
    const status = words[Found.status]
    if (view !== undefined) view.looks = 0
    if (status === Read.closed) {
      throw this.#closed()
    }
    if (status === Read.absent) {
      views.forget(key)
      return undefined
    }
    const [version, versionHigh] = [words[Found.version], words[Found.versionHigh]]
    const [index, word] = [words[Found.index], words[Found.word]]
    const leftMs = scratch.doubles[FoundDouble.leftMs]
    // The core counts whole milliseconds: one less here, never one more.
    const deadline = leftMs === 0 ? 0 : now + leftMs - 1
    if (view !== undefined && view.version === version && view.versionHigh === versionHigh) {
      view.word = word
      view.deadline = deadline
      views.keep(key, view)
      return view.value
    }
    const bytes = words[Found.length]
    if (words[Found.refers] === 1 && native.scratchMoves() === 1) {
      if (status === Read.large) native.scratchLarge()
      // Reading it would take it from whoever can.
      throw new StoreError('STORE_NOT_FREEZABLE', { id: this.id, path: 'value', what: MOVED })
    }
    const value = status === Read.large ? scratch.readLarge() : scratch.read(bytes)
    const unfreezable = deepFreeze(value)
    if (unfreezable !== undefined)
      throw new StoreError('STORE_NOT_FREEZABLE', { id: this.id, ...unfreezable })
    views.keep(key, { value, index, word, version, versionHigh, deadline, bytes, looks: 0 })
    return value
  }

  #openViews(): Views {
    return new Views(new Uint32Array(native.storeWords(this.#handle) ?? []))
  }

  /** One read, one write of what `change` makes of it, again until nobody came in between. */
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
          if (this.#write(key, value, mode, low, high, ttlMs)) return value
        } else if (old === ABSENT || this.#remove(key, Mode.expects, low, high) !== CONFLICTED) {
          return undefined
        }
      }
    } finally {
      this.#changing = within
    }
  }

  /** What makes the new value of a key, and the hooks of that, must not write the key: it would never end. */
  #refuseCycle(key: string): void {
    for (let at = this.#changing; at !== undefined; at = at.within) {
      if (at.key === key) throw new StoreError('STORE_UPDATE_CYCLE', { id: this.id, key: shown(key) })
    }
  }

  #findVersion(key: string): [number, number, unknown] {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#findVersion, this, [key])
    this.#putKey(key, 0)
    storeGet()
    const { words } = scratch
    const status = words[Found.status]
    const [low, high] = [words[Found.version], words[Found.versionHigh]]
    if (status === Read.found) return [low, high, scratch.read(words[Found.length])]
    if (status === Read.large) return [low, high, scratch.readLarge()]
    if (status === Read.absent) return [0, 0, ABSENT]
    throw this.#closed()
  }

  /** Returns false only when something else was there than expected. */
  #write(key: string, value: unknown, mode: number, low: number, high: number, ttlMs: number): boolean {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#write, this, [key, value, mode, low, high, ttlMs])
    if (typeof key !== 'string' || key.length > KEY_BYTES_MAX) throw this.#wrongKey(key)
    // Before the value is written: what it refers to would be left for the next one.
    if (key.length > KEY_BYTES_MAX / 2 && Scratch.isWide(key)) throw this.#wrongKey(key)
    return this.#send(key, scratch.write(value), mode, low, high, ttlMs)
  }

  /**
   * The common write: a short key and nothing else to heed. Small enough for the engine to inline, which is
   * why the words of `#putKey` stand here, and in `#find`, once more: calling it costs 25 ns.
   */
  #put(key: string, value: Value): void {
    const scratch = this.#scratch
    const length = scratch.write(value)
    if (length < 0 || length > SHORT_VALUE_MAX) {
      this.#send(key, length, 0, 0, 0, 0)
      return
    }
    const { given } = scratch
    given[Given.handle] = this.#handle
    given[Given.key] = scratch.putKey(key, HEADER_BYTES + length)
    given[Given.length] = length
    given[Given.mode] = 0
    storeSet()
    const status = scratch.words[Found.status]
    if (status !== Written.done) throw this.#refused(status, key)
    scratch.letGo()
  }

  /** Write the value that the scratch has, as `#write` does. */
  #send(key: string, written: number, mode: number, low: number, high: number, ttlMs: number): boolean {
    const scratch = this.#scratch
    let length = written
    const { given, words } = scratch
    let large = length < 0 ? scratch.overflow : undefined
    if (length + HEADER_BYTES + key.length * 2 + 1 > scratch.out.length) {
      large = scratch.out.slice(HEADER_BYTES, HEADER_BYTES + length)
    }
    if (large !== undefined) length = 0
    this.#putKey(key, length)
    given[Given.mode] = mode
    if (mode !== 0) {
      given[Given.version] = low
      given[Given.versionHigh] = high
      scratch.givenDoubles[GivenDouble.ttlMs] = ttlMs
    }
    if (large === undefined) storeSet()
    else {
      scratch.overflow = undefined
      native.storeSetLarge(large)
    }
    const status = words[Found.status]
    if (status === Written.done) {
      scratch.letGo()
      return true
    }
    if (status === Written.conflict) return false
    throw this.#refused(status, key)
  }

  /** Returns REMOVED, NOTHING or CONFLICTED. */
  #remove(key: string, mode: number, low: number, high: number): number {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#remove, this, [key, mode, low, high])
    this.#putKey(key, 0)
    const { given } = scratch
    given[Given.mode] = mode
    given[Given.version] = low
    given[Given.versionHigh] = high
    storeRemove()
    const status = scratch.words[Found.status]
    if (status === Written.closed) throw this.#closed()
    if (status !== Written.done) return CONFLICTED
    return scratch.words[Found.removed] === 1 ? REMOVED : NOTHING
  }

  /** Put handle, key and lengths where the core finds them; the value's `length` bytes lie before the key. */
  #putKey(key: string, length: number): void {
    const scratch = this.#scratch
    if (typeof key !== 'string' || key.length > KEY_BYTES_MAX) throw this.#wrongKey(key)
    const word = scratch.putKey(key, HEADER_BYTES + length)
    // Of a long key it is the length alone.
    if (key.length > KEY_BYTES_MAX / 2 && word > KEY_BYTES_MAX + 1) throw this.#wrongKey(key)
    const { given } = scratch
    given[Given.handle] = this.#handle
    given[Given.key] = word
    given[Given.length] = length
  }

  #withKey<Result>(key: string, body: () => Result): Result {
    const scratch = this.#scratch
    if (scratch.busy) return scratch.aside(this.#withKey, this, [key, body])
    this.#putKey(key, 0)
    return body()
  }

  #checkOpen(): void {
    if (native.storeId(this.#number) === undefined) throw this.#closed()
  }

  /** The store is closed: what the core and this thread hold of it goes now, not when this object does. */
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
    if (status !== Written.tooLarge) return this.#closed()
    return new StoreError('STORE_VALUE_TOO_LARGE', { id: this.id, key: shown(key), bytesMax: valueBytesMax })
  }

  #wrongKey(key: unknown): StoreError {
    const received = typeof key === 'string' ? `a string of ${key.length} characters` : shown(key)
    const expected = `a string of at most ${KEY_BYTES_MAX} bytes`
    return new StoreError('STORE_ARGUMENT', { name: 'key', expected, received })
  }
}

/** A key whose new value is being made. */
interface Changing {
  readonly key: string
  readonly within: Changing | undefined
}

const WATCH = { eventsMax: integer(1, 2 ** 31, EVENTS_MAX), signal: abortSignal }
const NO_UNDEFINED = 'a value other than undefined, which means no value (delete() deletes a key)'

/** What `#change` is told when nothing shall be written. */
const KEEP = Symbol('keep')
