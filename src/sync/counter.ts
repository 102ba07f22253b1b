/**
 * An integer that all threads add to.
 *
 * For counts and tickets; whatever needs more than one step belongs under a lock.
 */
import { native } from '../native/index.ts'
import { Counting, Found, FoundDouble, Given, GivenDouble } from '../bridge/index.ts'
import { SyncError, wrong } from './errors.ts'
import { type Arrived, Thing } from './thing.ts'

const EXPECTED = 'counter.compareAndSet(): expected'
const { counterDo } = native

/** An integer that all threads change atomically; exact up to 2^53 - 1 and refused beyond. */
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
    return this.#do(Counting.add, 0, 0)
  }

  /** Add; the sum. @throws {SyncError} `SYNC_COUNTER_RANGE`, `SYNC_ARGUMENT`. */
  add(by = 1): number {
    return this.#do(Counting.add, integer('counter.add(): by', by), 0) + by
  }

  /** Replace the value; what it was. @throws {SyncError} `SYNC_ARGUMENT`. */
  set(value: number): number {
    return this.#do(Counting.set, integer('counter.set(): value', value), 0)
  }

  /** Replace the value if it is `expected`; whether it was. @throws {SyncError} `SYNC_ARGUMENT`. */
  compareAndSet(expected: number, value: number): boolean {
    return (
      this.#do(
        Counting.swap,
        integer('counter.compareAndSet(): value', value),
        integer(EXPECTED, expected),
      ) === expected
    )
  }

  #do(what: number, operand: number, expected: number): number {
    const { given, givenDoubles, words, doubles } = Thing.scratchOf(this)
    given[Given.handle] = this.handle
    given[Given.counting] = what
    givenDoubles[GivenDouble.operand] = operand
    givenDoubles[GivenDouble.expected] = expected
    counterDo()
    if (words[Found.status] !== 0) throw new SyncError('SYNC_COUNTER_RANGE', this.which)
    return doubles[FoundDouble.before]
  }
}

function integer(argument: string, value: number): number {
  if (Number.isSafeInteger(value)) return value
  throw wrong(argument, 'a safe integer', value)
}
