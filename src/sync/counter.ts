/**
 * AtomicCounter: an integer that all threads change atomically.
 *
 * Anything that needs more than one step belongs under a lock.
 */
import { Counting, Found, FoundDouble, Given, GivenDouble } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { registerHandle } from '../transport/internal.ts'
import { SyncError, wrong } from './errors.ts'
import { SyncHandle, handleOrNew } from './handle.ts'

const ARGUMENT = 'counter.compareAndSet(): expected'
// Constants of this module, which the engine folds; properties of an imported object are loaded at every use.
const { counterDo } = native
const { handle: HANDLE, counting: COUNTING } = Given
const { operand: OPERAND, expected: EXPECTED } = GivenDouble
const { status: STATUS } = Found
const { before: BEFORE } = FoundDouble

/**
 * An integer that all threads of the process change atomically, for counts and ticket numbers. It starts at 0
 * and stays within the safe integers.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { AtomicCounter } from 'corespun'
 *
 * const counter = AtomicCounter.create('tickets')
 * assert.equal(counter.add(5), 5)
 * assert.equal(AtomicCounter.get('tickets').value, 5)
 * counter[Symbol.dispose]()
 * ```
 */
export class AtomicCounter {
  static {
    registerHandle({
      tag: 'corespun.AtomicCounter',
      is: AtomicCounter,
      save: (counter: AtomicCounter) => counter.#handle.save(),
      load: (saved) => new AtomicCounter(SyncHandle.load('counter', saved as never)),
    })
  }

  /** The name in the process; `''` if the counter is anonymous. */
  readonly name: string
  readonly #handle: SyncHandle

  /** Creates an anonymous counter. */
  constructor()
  /** @internal */
  constructor(handle: SyncHandle)
  constructor(handle?: SyncHandle) {
    this.#handle = handleOrNew('counter', 0, handle)
    this.name = this.#handle.which.name
  }

  /**
   * Creates a counter with a name of 1 to 256 characters.
   * @throws {SyncError} `SYNC_EXISTS` when a counter has that name; `SYNC_ARGUMENT`.
   */
  static create(name: string): AtomicCounter {
    return new AtomicCounter(SyncHandle.create('counter', name, 0))
  }

  /**
   * Returns the counter that any thread has created with that name.
   * @throws {SyncError} `SYNC_UNKNOWN` when no counter has that name; `SYNC_ARGUMENT`.
   */
  static get(name: string): AtomicCounter {
    return new AtomicCounter(SyncHandle.get('counter', name))
  }

  /** Returns the counter with that name, and creates it if necessary. @throws {SyncError} `SYNC_ARGUMENT`. */
  static getOrCreate(name: string): AtomicCounter {
    return new AtomicCounter(SyncHandle.getOrCreate('counter', name, 0))
  }

  /** The current value. */
  get value(): number {
    return this.#do(Counting.add, 0, 0)
  }

  /**
   * Adds `by` (default 1) and returns the sum.
   * @throws {SyncError} `SYNC_COUNTER_RANGE` when the sum is not a safe integer; `SYNC_ARGUMENT`.
   */
  add(by = 1): number {
    return this.#do(Counting.add, safeInteger('counter.add(): by', by), 0) + by
  }

  /** Replaces the value and returns the previous one. @throws {SyncError} `SYNC_ARGUMENT`. */
  set(value: number): number {
    return this.#do(Counting.set, safeInteger('counter.set(): value', value), 0)
  }

  /**
   * Replaces the value if it is `expected`, and returns whether it was.
   * @throws {SyncError} `SYNC_ARGUMENT`.
   */
  compareAndSet(expected: number, value: number): boolean {
    return (
      this.#do(
        Counting.swap,
        safeInteger('counter.compareAndSet(): value', value),
        safeInteger(ARGUMENT, expected),
      ) === expected
    )
  }

  /** Removes it from the process and frees its name. Threads that have a handle can still use it. */
  [Symbol.dispose](): void {
    this.#handle.dispose()
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#handle.dispose()
  }

  #do(what: number, operand: number, expected: number): number {
    const { given, givenDoubles, words, doubles } = this.#handle.scratch
    given[HANDLE] = this.#handle.id
    given[COUNTING] = what
    givenDoubles[OPERAND] = operand
    givenDoubles[EXPECTED] = expected
    counterDo()
    if (words[STATUS] !== 0) throw new SyncError('SYNC_COUNTER_RANGE', this.#handle.which)
    return doubles[BEFORE]
  }
}

function safeInteger(argument: string, value: number): number {
  if (Number.isSafeInteger(value)) return value
  throw wrong(argument, 'a safe integer', value)
}
