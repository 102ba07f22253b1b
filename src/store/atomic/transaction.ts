/**
 * One attempt of a transaction: what it has read, at which versions, and what it is to write.
 *
 *     active --retry()--> retries     an orElse() goes on with its second way, or the attempt waits
 *     active --a read that does not fit the others--> conflicts     the attempt begins again
 *     any --the function has returned--> ended
 *
 * What was read is of one moment: a second read compares the version words of those before it. So a function
 * never computes with halves of two commits, its errors are its own, and what only reads need not be compared
 * again. Writes stay here until `commit`, one call of the core for all stores.
 *
 * Over 400 lines: the overloads of the public methods are documented one by one.
 */
import { isThenable } from '../../base/index.ts'
import { Mode } from '../../bridge/index.ts'
import { Entry, NONE } from '../entry.ts'
import { StoreError, wrong } from '../errors.ts'
import { type WriteOptions, ttlOf } from '../options.ts'
import { Store } from '../store.ts'
import { areCurrent, committed } from './commit.ts'
import { TRef } from './t-ref.ts'

const ACTIVE = 0
const RETRIES = 1
const CONFLICTS = 2
const ENDED = 3

/** Thrown to leave the function; what was thrown does not matter, the state does. */
const LEAVE = new Error('a transaction leaves its function; pass this error on')

/** The entries of a transaction that has used no key yet; never changed. */
const EMPTY: Entry<Store>[] = []
/** Up to so many keys are looked through one by one. */
const FEW = 8

const NO_UNDEFINED = 'a value other than undefined (delete() deletes a key)'

/** What a transaction is to do with a {@link TRef}. */
interface RefEntry {
  readonly ref: TRef<unknown>
  isWritten: boolean
  value: unknown
}

/** What a way of `orElse` finds, and leaves to the other. */
interface Point {
  readonly entries: readonly (readonly [
    Entry<Store>,
    action: number,
    mode: number,
    ttlMs: number,
    written: unknown,
  ])[]
  readonly refs: readonly (readonly [RefEntry, isWritten: boolean, value: unknown])[]
}

/** The transaction that runs in this thread. */
let running: Transaction | undefined

/** The list of the last transaction of one key: most of what the next one would allocate. */
let spare: Entry<Store>[] | undefined

function begin(tx: Transaction): void {
  running = tx
}

/**
 * Reads and changes keys of stores, and {@link TRef}s, as one step; the argument of the function of
 * `atomically`. It sees its own changes. Nobody else does before the function has returned.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Transaction, atomicallySync, store } from 'corespun/store'
 *
 * const stock = store.create<number>('stock')
 * const add = (tx: Transaction, item: string, count: number) => {
 *   tx.update(stock, item, (before = 0) => before + count)
 *   tx.update(stock, 'all', (before = 0) => before + count)
 * }
 * atomicallySync((tx) => ['tea', 'ice'].forEach((item) => add(tx, item, 2)))
 * assert.deepEqual([stock.get('tea'), stock.get('all')], [2, 4])
 * stock.close()
 * ```
 */
export class Transaction {
  readonly #call: string
  readonly #keysMax: number
  #state = ACTIVE
  #entries: Entry<Store>[] = EMPTY
  /** How many of them keep other calls from writing their keys. */
  #entered = 0
  #index: Map<Store, Map<string, Entry<Store>>> | undefined
  #refs: Map<TRef<unknown>, RefEntry> | undefined
  /** @internal What the function has returned. */
  result: unknown = undefined

  /** @internal */
  constructor(call: string, keysMax: number) {
    this.#call = call
    this.#keysMax = keysMax
  }

  /**
   * Returns a copy of the value of a key, `undefined` if it is absent. A second read returns the
   * same object.
   * @throws {StoreError} `STORE_CLOSED`, `STORE_ARGUMENT`, `STORE_ATOMIC_KEYS`, `STORE_ATOMIC_ENDED`.
   */
  get<Value>(store: Store<Value>, key: string): Value | undefined
  /** Returns the value of a ref. @throws {StoreError} `STORE_ATOMIC_KEYS`, `STORE_ATOMIC_ENDED`. */
  get<Value>(ref: TRef<Value>): Value
  get(what: unknown, key?: unknown): unknown {
    if (what instanceof TRef) {
      const known = this.#refEntry(what)
      return known.isWritten ? known.value : what.get()
    }
    return this.#read(this.#entry('tx.get()', what, key))
  }

  /**
   * Writes a value when the transaction commits, which copies it then. `undefined` is not a value.
   * @throws {StoreError} `STORE_ARGUMENT`, `STORE_ATOMIC_KEYS`, `STORE_ATOMIC_ENDED`; when it commits, those
   *   of `store.set`.
   */
  set<Value>(store: Store<Value>, key: string, value: Value, options?: WriteOptions): void
  /** Replaces the value of a ref. @throws {StoreError} `STORE_ATOMIC_KEYS`, `STORE_ATOMIC_ENDED`. */
  set<Value>(ref: TRef<Value>, value: Value): void
  set(what: unknown, key: unknown, value?: unknown, options?: WriteOptions): void {
    if (what instanceof TRef) {
      this.#putRef(this.#refEntry(what), key)
      return
    }
    if (value === undefined) throw wrong('tx.set(): value', NO_UNDEFINED, value)
    const ttlMs = options === undefined ? 0 : ttlOf('tx.set()', options)
    this.#entry('tx.set()', what, key).put(value, ttlMs > 0 ? Mode.hasTtl : 0, ttlMs)
  }

  /**
   * Replaces the value with the result of `fn` and returns it. `fn` receives `undefined` for an absent key,
   * and deletes the key by returning `undefined`. The entry keeps its expiration time unless `ttlMs` is set.
   * @throws {StoreError} as `get` and `set`.
   * @throws whatever `fn` throws.
   */
  update<Value>(
    store: Store<Value>,
    key: string,
    fn: (value: Value | undefined) => Value | undefined,
    options?: WriteOptions,
  ): Value | undefined
  /** Replaces the value of a ref with the result of `fn` and returns it. @throws {StoreError} as `get`. */
  update<Value>(ref: TRef<Value>, fn: (value: Value) => Value): Value
  update(what: unknown, key: unknown, fn?: (value: unknown) => unknown, options?: WriteOptions): unknown {
    const change = what instanceof TRef ? (key as typeof fn) : fn
    if (typeof change !== 'function') throw wrong('tx.update(): the function', 'a function', change)
    if (what instanceof TRef) {
      const known = this.#refEntry(what)
      const value = change(known.isWritten ? known.value : what.get())
      this.#check()
      return this.#putRef(known, value)
    }
    const ttlMs = ttlOf('tx.update()', options)
    const entry = this.#entry('tx.update()', what, key)
    const value = change(this.#read(entry))
    this.#check()
    if (value instanceof Promise)
      throw wrong('tx.update(): the function', 'one that returns the new value', value)
    if (ttlMs > 0) entry.put(value, Mode.hasTtl, ttlMs)
    // What the transaction has written keeps what it has decided, and its deletion is one.
    else if (entry.action !== NONE) entry.put(value, entry.mode, entry.ttlMs)
    else entry.put(value, Mode.keepsTtl, 0)
    return value
  }

  /**
   * Deletes a key and returns whether it had a value.
   * @throws {StoreError} as `get`.
   */
  delete(store: Store, key: string): boolean {
    const entry = this.#entry('tx.delete()', store, key)
    const had = this.#read(entry) !== undefined
    entry.put(undefined, 0, 0)
    return had
  }

  /**
   * Undoes the attempt, and makes another one when something that it has read is changed. In a way of
   * `orElse`, the next one is taken. It throws, so nothing behind it runs.
   */
  retry(): never {
    this.#check()
    this.#state = RETRIES
    throw LEAVE
  }

  /** Calls `retry` unless the condition is met. */
  check(condition: boolean): void {
    if (!condition) this.retry()
  }

  /**
   * Returns the result of `first`. If it calls `retry`, its changes are undone and `second` runs instead. If
   * both do, the transaction waits until something that either has read is changed.
   */
  orElse<First, Second>(first: () => First, second: () => Second): First | Second {
    this.#check()
    for (const way of [first, second])
      if (typeof way !== 'function') throw wrong('tx.orElse(): a way', 'a function', way)
    const point = this.#point()
    try {
      const result = first()
      // One that was caught counts as well.
      if (this.#state === ACTIVE) return result
    } catch (error) {
      if (this.#state === ACTIVE) throw error
    }
    if (this.#state !== RETRIES) throw LEAVE
    this.#state = ACTIVE
    this.#back(point)
    return second()
  }

  /** @internal Runs the function and commits. Returns false if it is to be run again, now or after a wait. */
  run(fn: (tx: Transaction) => unknown): boolean {
    if (running !== undefined) throw new StoreError('STORE_ATOMIC_NESTED', { call: this.#call })
    begin(this)
    try {
      const result = fn(this)
      this.result = result
      if (this.#state !== ACTIVE) return false
      if (typeof result === 'object' && result !== null) this.#checkEnded(result)
      if (this.#entered > 0) this.#leaveAll()
      return this.#commit()
    } catch (error) {
      if (this.#state === ACTIVE) throw error
      return false
    } finally {
      if (this.#entered > 0) this.#leaveAll()
      if (this.#state === ACTIVE) this.#end()
      running = undefined
    }
  }

  #end(): void {
    this.#state = ENDED
    const entries = this.#entries
    if (entries.length !== 1) return
    spare = entries
    entries[0].release()
  }

  /** @internal Whether the attempt has called `retry`; otherwise it had a conflict. */
  get isWaiting(): boolean {
    return this.#state === RETRIES
  }

  /** @internal The keys that were read. */
  get reads(): readonly Entry<Store>[] {
    return this.#entries.filter(({ isRead }) => isRead)
  }

  /** @internal The refs that were used. */
  get refs(): readonly TRef<unknown>[] {
    return [...(this.#refs?.keys() ?? [])]
  }

  /** Refuses a promise, and a generator, of which nothing has run. */
  #checkEnded(result: object): void {
    const waits = isThenable(result)
    const { [Symbol.toStringTag]: kind } = result as { readonly [Symbol.toStringTag]?: unknown }
    if (!waits && kind !== 'Generator' && kind !== 'AsyncGenerator') return
    // What it rejects with later is nobody's.
    if (waits) result.then(undefined, () => {})
    throw wrong(`${this.#call}: the function`, 'one that returns its result (wait before the call)', result)
  }

  #check(): void {
    if (this.#state !== ACTIVE) this.#refuse()
  }

  #refuse(): never {
    if (this.#state === ENDED || running !== this)
      throw new StoreError('STORE_ATOMIC_ENDED', { call: this.#call })
    throw LEAVE
  }

  #entry(call: string, store: unknown, key: unknown): Entry<Store> {
    this.#check()
    return this.#find(store, key) ?? this.#add(call, store, key)
  }

  #add(call: string, store: unknown, key: unknown): Entry<Store> {
    if (!(store instanceof Store)) throw wrong(`${call}: the first argument`, 'a store or a TRef', store)
    Store.checkKey(store, key)
    const entries = this.#entries
    if (entries.length === this.#keysMax)
      throw new StoreError('STORE_ATOMIC_KEYS', { call: this.#call, keysMax: this.#keysMax })
    const isFirst = this.#entered === 0
    const first = isFirst ? spare : undefined
    if (isFirst) spare = undefined
    const entry = first === undefined ? new Entry(store, key) : first[0].renew(store, key)
    Store.enter(store, entry)
    // A list of one has no room for more; the first push would make room for sixteen.
    if (isFirst) this.#entries = first ?? [entry]
    else entries.push(entry)
    this.#entered++
    if (entries.length > FEW) this.#keep(entry)
    return entry
  }

  #find(store: unknown, key: unknown): Entry<Store> | undefined {
    if (this.#index !== undefined) return this.#index.get(store as Store)?.get(key as string)
    const entries = this.#entries
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]
      if (entry.store === store && entry.key === key) return entry
    }
    return undefined
  }

  #keep(entry: Entry<Store>): void {
    if (this.#index === undefined) {
      this.#index = new Map()
      for (const other of this.#entries) this.#keep(other)
      return
    }
    const keys = this.#index.get(entry.store)
    if (keys === undefined) this.#index.set(entry.store, new Map([[entry.key, entry]]))
    else keys.set(entry.key, entry)
  }

  #refEntry(ref: TRef<unknown>): RefEntry {
    this.#check()
    const refs = (this.#refs ??= new Map())
    let known = refs.get(ref)
    if (known === undefined) {
      if (refs.size === this.#keysMax)
        throw new StoreError('STORE_ATOMIC_KEYS', { call: this.#call, keysMax: this.#keysMax })
      known = { ref, isWritten: false, value: undefined }
      refs.set(ref, known)
    }
    return known
  }

  #putRef(known: RefEntry, value: unknown): unknown {
    known.isWritten = true
    known.value = value
    return value
  }

  #read(entry: Entry<Store>): unknown {
    if (entry.action !== NONE) return entry.current
    if (entry.isFresh) return entry.value
    if (!Store.read(entry.store, entry, entry.isRead)) this.#conflict()
    entry.isRead = true
    entry.isFresh = true
    if (this.#entries.length > 1 && !this.#isOfOneMoment(entry)) this.#conflict()
    return entry.value
  }

  #conflict(): never {
    this.#state = CONFLICTS
    throw LEAVE
  }

  /** Whether what was read before is unchanged, now that another key was read. */
  #isOfOneMoment(last: Entry<Store>): boolean {
    let isSame = true
    for (const entry of this.#entries) {
      if (entry === last || !entry.isRead) continue
      if (Store.wordsOf(entry.store)[entry.index] !== entry.word) isSame = false
    }
    if (isSame) return true
    // Other keys have the same words. What is compared exactly now has been so since it was read.
    const words = this.#entries.map(({ store, index }) => Store.wordsOf(store)[index] ?? 0)
    if (!areCurrent(this.reads)) return false
    for (const [index, entry] of this.#entries.entries()) entry.word = words[index]
    return true
  }

  #leaveAll(): void {
    while (this.#entered > 0) Store.leave(this.#entries[--this.#entered].store)
  }

  #commit(): boolean {
    const entries = this.#entries
    let writes = 0
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]
      if (entry.isRead) entry.mode |= Mode.expects
      if (entry.action !== NONE) writes++
    }
    if (writes > 0 && !this.#write(writes)) {
      this.#state = CONFLICTS
      return false
    }
    if (this.#refs !== undefined) this.#writeRefs(this.#refs)
    return true
  }

  #write(writes: number): boolean {
    const entries = this.#entries
    if (entries.length === 1) return Store.commit(entries[0].store, entries[0])
    if (writes > 1) this.#refuseFiles()
    return committed(entries)
  }

  #refuseFiles(): void {
    const filed = new Set<Store>()
    for (const { action, store } of this.#entries)
      if (action !== NONE && Store.settingsOf(store).file !== undefined) filed.add(store)
    if (filed.size < 2) return
    const ids = [...filed].map(({ id }) => id)
    throw new StoreError('STORE_ATOMIC_FILES', { call: this.#call, ids })
  }

  #writeRefs(refs: Map<TRef<unknown>, RefEntry>): void {
    // Who waits for one runs later, when all of them are written.
    for (const { ref, isWritten, value } of refs.values()) if (isWritten) TRef.put(ref, value)
  }

  #point(): Point {
    const entries = this.#entries.filter(({ action }) => action !== NONE)
    const refs = [...(this.#refs?.values() ?? [])].filter(({ isWritten }) => isWritten)
    return {
      entries: entries.map((entry) => [entry, entry.action, entry.mode, entry.ttlMs, entry.written]),
      refs: refs.map((known) => [known, known.isWritten, known.value]),
    }
  }

  /** Undoes what was written since; what was read is still compared, and read again, as it may be altered. */
  #back({ entries, refs }: Point): void {
    for (const entry of this.#entries) {
      entry.action = NONE
      entry.written = undefined
      entry.isFresh = false
    }
    for (const [entry, action, mode, ttlMs, written] of entries)
      Object.assign(entry, { action, mode, ttlMs, written })
    for (const known of this.#refs?.values() ?? []) known.isWritten = false
    for (const [known, isWritten, value] of refs) Object.assign(known, { isWritten, value })
  }
}
