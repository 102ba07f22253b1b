/**
 * An integer that all threads add to.
 *
 * For counts and tickets; whatever needs more than one step belongs under a lock.
 */
import { native } from '../native/index.ts'
import { SyncError, wrong } from './errors.ts'
import { type Arrived, Thing } from './thing.ts'

const ADD = 0
const SET = 1
const SWAP = 2
const EXPECTED = 'counter.compareAndSet(): expected'
const { counterDo } = native

/** See the module's text; exact as far as numbers are (2^53 - 1), and refused beyond. */
export class AtomicCounter extends Thing {
  /**
   * Starts at 0.
   * @param name Process-wide; without one the counter is known by its handles only.
   * @throws {SyncError} `SYNC_ARGUMENT`.
   */
  constructor(name?: string | Arrived) {
    super('counter', name, 0)
  }

  /** Its value now. */
  get value(): number {
    return this.#do(ADD, 0, 0)
  }

  /** Add; the sum. @throws {SyncError} `SYNC_COUNTER_RANGE`, `SYNC_ARGUMENT`. */
  add(by = 1): number {
    return this.#do(ADD, integer('counter.add(): by', by), 0) + by
  }

  /** Replace the value; what it was. @throws {SyncError} `SYNC_ARGUMENT`. */
  set(value: number): number {
    return this.#do(SET, integer('counter.set(): value', value), 0)
  }

  /** Replace the value if it is `expected`; whether it was. @throws {SyncError} `SYNC_ARGUMENT`. */
  compareAndSet(expected: number, value: number): boolean {
    return (
      this.#do(SWAP, integer('counter.compareAndSet(): value', value), integer(EXPECTED, expected)) ===
      expected
    )
  }

  #do(what: number, operand: number, expected: number): number {
    const { given, givenDoubles, words, doubles } = Thing.stageOf(this)
    given[0] = this.handle
    given[1] = what
    givenDoubles[2] = operand
    givenDoubles[3] = expected
    counterDo()
    if (words[0] !== 0) throw new SyncError('SYNC_COUNTER_RANGE', this.which)
    return doubles[3]
  }
}

function integer(argument: string, value: number): number {
  if (Number.isSafeInteger(value)) return value
  throw wrong(argument, 'a safe integer', value)
}
