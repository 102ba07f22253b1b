/**
 * Transactions: a function changes several keys, of one store or of several, as one step.
 *
 * Optimistic: the function runs without a lock and its changes are committed if what it has read is
 * unchanged; otherwise it runs again. A conflict means that another transaction or write has ended, so
 * some thread always progresses. `Transaction` is an attempt, `Waiting` what follows a `retry`.
 */
import {
  TIMER_MS_MAX,
  type Waitable,
  abortSignal,
  integer,
  milliseconds,
  ownOptions,
  turn,
  unwatch,
  valueOfKind,
  waitableOf,
  watch,
} from '../../base/index.ts'
import { StoreError, wrong } from '../errors.ts'
import { Transaction } from './transaction.ts'
import { Waiting } from './waiting.ts'

/** Options of `atomicallySync`. */
export interface AtomicSyncOptions {
  /** Most keys, and most refs, that one attempt reads or writes, up to 16,384; 1024 by default. */
  readonly keysMax?: number
  /** Most attempts one after the other that end in a conflict; 1000 by default. */
  readonly attemptsMax?: number
}

/** Options of `atomically`. */
export interface AtomicOptions extends AtomicSyncOptions {
  /** Longest time in milliseconds, from the call; no limit by default. */
  readonly timeoutMs?: number
  /** Ends the call, which rejects with the signal's reason; nothing is written. */
  readonly signal?: AbortSignal
}

interface Limits {
  readonly keysMax: number
  readonly attemptsMax: number
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** Each read compares the words of all before it, so more would take seconds. */
const KEYS_MOST = 16_384
const KEYS = integer(1, KEYS_MOST, 1024)
const ATTEMPTS = integer(1, Number.MAX_SAFE_INTEGER, 1000)
const TIMEOUT = milliseconds<number | undefined>(TIMER_MS_MAX, undefined)
const SYNC_OPTIONS = new Set(['keysMax', 'attemptsMax'])
const OPTIONS = new Set([...SYNC_OPTIONS, 'timeoutMs', 'signal'])
const DEFAULTS: Limits = { keysMax: 1024, attemptsMax: 1000, timeoutMs: undefined, signal: undefined }

const CALL = 'atomically()'
const SYNC_CALL = 'atomicallySync()'
/** Conflicts one after the other before the event loop has a turn. */
const CONFLICTS_PER_TURN = 8

/**
 * Runs a function that reads and changes keys of stores, and {@link TRef}s; all of its changes take effect at
 * one moment, or none. The function runs without a lock, and again when another thread has changed what it
 * read, so it should have no side effects, and it may not wait. What it reads is of one moment. If it throws,
 * nothing is written. `tx.retry()` waits until something that was read is changed.
 *
 * With files, at most one of the written stores has one; it contains all of the changes or none.
 *
 * In the code of a fiber it begins at `yield*` or `await`, and an interrupt of that fiber ends it. What has
 * begun outside is a promise, for which a fiber waits by `attempt(promise)`.
 * @throws {StoreError} `STORE_ARGUMENT`, `STORE_ATOMIC_NESTED`, `STORE_ATOMIC_KEYS`,
 *   `STORE_ATOMIC_CONTENDED`, `STORE_ATOMIC_TIMEOUT`, `STORE_ATOMIC_FILES`; `STORE_ATOMIC_WAITS` for `retry`
 *   before anything was read; and as `store.get` and `store.set`.
 * @throws whatever the function throws, and the reason of the signal.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { atomically, store } from 'corespun/store'
 *
 * const accounts = store.create<number>('accounts')
 * accounts.set('ada', 10)
 * const pay = (from: string, to: string, amount: number) =>
 *   atomically((tx) => {
 *     const balance = tx.get(accounts, from) ?? 0
 *     tx.check(balance >= amount)
 *     tx.set(accounts, from, balance - amount)
 *     tx.update(accounts, to, (other = 0) => other + amount)
 *   })
 * const waits = pay('bob', 'ada', 3)
 * await pay('ada', 'bob', 4)
 * await waits
 * assert.deepEqual([accounts.get('ada'), accounts.get('bob')], [9, 1])
 * accounts.close()
 * ```
 */
export function atomically<Result>(
  fn: (tx: Transaction) => Result,
  options?: AtomicOptions,
): Waitable<Result, unknown> {
  return waitableOf((signal) => begun(fn, options, signal))
}

function begun<Result>(
  fn: (tx: Transaction) => Result,
  options: AtomicOptions | undefined,
  interrupted: AbortSignal | undefined,
): Promise<Result> {
  try {
    const own = limitsOf(CALL, fn, options, OPTIONS)
    const limits = interrupted === undefined ? own : { ...own, signal: either(own.signal, interrupted) }
    limits.signal?.throwIfAborted()
    const tx = new Transaction(CALL, limits.keysMax)
    if (tx.run(fn)) return Promise.resolve(tx.result as Result)
    return again(fn, limits, tx)
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * As {@link atomically}, and returns when it is done. It cannot wait: `retry` throws unless a way of `orElse`
 * is left.
 * @throws {StoreError} as `atomically`; `STORE_ATOMIC_WAITS` for `retry`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { atomicallySync, store } from 'corespun/store'
 *
 * const rooms = store.create<string>('rooms')
 * rooms.set('first', 'Ada')
 * atomicallySync((tx) => {
 *   const guest = tx.get(rooms, 'first')
 *   tx.delete(rooms, 'first')
 *   if (guest !== undefined) tx.set(rooms, 'second', guest)
 * })
 * assert.deepEqual([...rooms], [['second', 'Ada']])
 * rooms.close()
 * ```
 */
export function atomicallySync<Result>(fn: (tx: Transaction) => Result, options?: AtomicSyncOptions): Result {
  const { keysMax, attemptsMax } = limitsOf(SYNC_CALL, fn, options, SYNC_OPTIONS)
  for (let attempt = 1; ; attempt++) {
    const tx = new Transaction(SYNC_CALL, keysMax)
    if (tx.run(fn)) return tx.result as Result
    if (tx.isWaiting) throw new StoreError('STORE_ATOMIC_WAITS', { call: SYNC_CALL, hasRead: true })
    if (attempt === attemptsMax)
      throw new StoreError('STORE_ATOMIC_CONTENDED', { call: SYNC_CALL, attemptsMax })
  }
}

function either(own: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return own === undefined ? other : AbortSignal.any([own, other])
}

/** What follows the first attempt. */
async function again<Result>(
  fn: (tx: Transaction) => Result,
  { keysMax, attemptsMax, timeoutMs, signal }: Limits,
  first: Transaction,
): Promise<Result> {
  const end = new End(timeoutMs, signal)
  try {
    let [tx, conflicts] = [first, 0]
    for (;;) {
      if (tx.isWaiting) {
        conflicts = 0
        await end.before(tx)
      } else if (++conflicts === attemptsMax) {
        throw new StoreError('STORE_ATOMIC_CONTENDED', { call: CALL, attemptsMax })
      } else if (conflicts % CONFLICTS_PER_TURN === 0) await turn()
      end.check()
      tx = new Transaction(CALL, keysMax)
      if (tx.run(fn)) return tx.result as Result
    }
  } finally {
    end.forget()
  }
}

/** What ends a call early: its time, or its signal. */
class End {
  readonly #timeoutMs: number | undefined
  readonly #signal: AbortSignal | undefined
  readonly #timer: ReturnType<typeof setTimeout> | undefined
  #isLate = false
  #waiting: Waiting | undefined
  readonly #stop = (): void => this.#waiting?.end()

  constructor(timeoutMs: number | undefined, signal: AbortSignal | undefined) {
    this.#timeoutMs = timeoutMs
    this.#signal = signal
    if (signal !== undefined) watch(signal, this.#stop)
    if (timeoutMs === undefined) return
    this.#timer = setTimeout(() => {
      this.#isLate = true
      this.#stop()
    }, timeoutMs)
  }

  /** Waits for a change of what the attempt has read, or for the end. */
  async before(tx: Transaction): Promise<void> {
    if (tx.reads.length + tx.refs.length === 0)
      throw new StoreError('STORE_ATOMIC_WAITS', { call: CALL, hasRead: false })
    this.check()
    this.#waiting = new Waiting(tx)
    await this.#waiting.changed
    this.#waiting = undefined
  }

  check(): void {
    this.#signal?.throwIfAborted()
    const timeoutMs = this.#timeoutMs
    if (this.#isLate && timeoutMs !== undefined)
      throw new StoreError('STORE_ATOMIC_TIMEOUT', { call: CALL, timeoutMs })
  }

  forget(): void {
    clearTimeout(this.#timer)
    if (this.#signal !== undefined) unwatch(this.#signal, this.#stop)
  }
}

/** @throws {StoreError} `STORE_ARGUMENT`. */
function limitsOf(
  call: string,
  fn: unknown,
  options: AtomicOptions | undefined,
  known: ReadonlySet<string>,
): Limits {
  if (typeof fn !== 'function') throw wrong(`${call}: the first argument`, 'a function', fn)
  if (options === undefined) return DEFAULTS
  const own = ownOptions(options, known, wrong, call)
  return {
    keysMax: valueOfKind(call, 'keysMax', own.keysMax, KEYS, wrong),
    attemptsMax: valueOfKind(call, 'attemptsMax', own.attemptsMax, ATTEMPTS, wrong),
    timeoutMs: valueOfKind(call, 'timeoutMs', own.timeoutMs, TIMEOUT, wrong),
    signal: valueOfKind(call, 'signal', own.signal, abortSignal, wrong),
  }
}
