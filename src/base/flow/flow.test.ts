/**
 * A flow against a plain oracle: random sources, bounds, sizes of chunks that change from one to the next,
 * runs that end at once, late, early with a part of their items or with an error, and readers that leave.
 *
 * What runs, what is held and what comes out is compared at every step.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Flow, Part, outcomesOf, readerOf } from '../index.ts'

/** How many turns of the loop the run of an item takes; none: it returns its outcome. */
type Turns = number | undefined

interface Plan {
  readonly items: readonly Turns[]
  readonly failing: number | undefined
  /** The source throws instead of its end; not an array. */
  readonly isBroken: boolean
  readonly source: 'array' | 'iterable' | 'async'
  readonly ordered: boolean
  readonly runsMax: number
  readonly aheadMax: number | undefined
  readonly refillsLate: boolean
  /** After how many outcomes the reader leaves. */
  readonly leavesAt: number | undefined
  /** The size of the next chunk, each time it is asked for, and again from the first on. */
  readonly sizes: readonly number[]
  /** After how many items the next run ends, in the same way; 0 and more than it has: it runs all. */
  readonly parts: readonly number[]
}

const SIZE_MAX = 5

const plans: fc.Arbitrary<Plan> = fc.record({
  items: fc.array(fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }), { maxLength: 40 }),
  failing: fc.option(fc.nat(40), { nil: undefined }),
  isBroken: fc.boolean(),
  source: fc.constantFrom('array', 'iterable', 'async'),
  ordered: fc.boolean(),
  runsMax: fc.integer({ min: 1, max: 8 }),
  aheadMax: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  refillsLate: fc.boolean(),
  leavesAt: fc.option(fc.nat(40), { nil: undefined }),
  sizes: fc.array(fc.integer({ min: 1, max: SIZE_MAX }), { minLength: 1, maxLength: 7 }),
  parts: fc.array(fc.nat(SIZE_MAX), { minLength: 1, maxLength: 7 }),
})

/** The numbers, again and again. */
function cycle(numbers: readonly number[]): () => number {
  let at = 0
  return () => numbers[at++ % numbers.length]
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Source {
  readonly source: Iterable<number> | AsyncIterable<number>
  readonly closed: () => number
  /** Whether all items were read. */
  readonly isRead: () => boolean
}

/** A source that counts how often it was closed. */
function sourceOf(items: readonly number[], kind: Plan['source'], isBroken: boolean): Source {
  if (kind === 'array') return { source: items, closed: () => 0, isRead: () => true }
  let closed = 0
  let at = 0
  const next = (): IteratorResult<number> => {
    if (at < items.length) return { done: false, value: items[at++] }
    if (isBroken) throw new SyntaxError('the source')
    return { done: true, value: undefined }
  }
  const end = (): IteratorResult<number> => (closed++, { done: true, value: undefined })
  const source =
    kind === 'iterable'
      ? { [Symbol.iterator]: () => ({ next, return: end }) }
      : {
          [Symbol.asyncIterator]: () => ({
            next: async () => next(),
            return: () => Promise.resolve(end()),
          }),
        }
  const isRead = (): boolean => at === items.length
  return { source: source as Iterable<number>, closed: () => closed, isRead }
}

type Outcome = number[] | Part<number[]>

/** What was run so far, and what was wrong with it: an assertion in a run would be its failure. */
class Runs {
  readonly #plan: Plan
  readonly #partNow: () => number
  readonly #seen = new Set<number>()
  readonly faults: string[] = []
  running = 0
  /** Items that have begun and were not taken. */
  held = 0
  isClosed = false
  #isOver = false
  /** The first item of the chunk that failed. */
  failedFirst: number | undefined

  constructor(plan: Plan) {
    this.#plan = plan
    this.#partNow = cycle(plan.parts)
  }

  readonly run = (chunk: ArrayLike<number>): Outcome | Promise<Outcome> => {
    const part = this.#partNow()
    const count = part === 0 ? chunk.length : Math.min(part, chunk.length)
    const mine = Array.from({ length: count }, (_, at) => chunk[at])
    for (const [at, index] of mine.entries()) {
      if (index !== chunk[0] + at) this.faults.push(`item ${index} is in the chunk of ${chunk[0]}`)
      this.#begin(index)
    }
    const waits = mine.map((index) => this.#plan.items[index]).filter((turns) => turns !== undefined)
    if (waits.length === 0) return this.#outcome(mine, count < chunk.length, true)
    this.running++
    if (this.running > this.#plan.runsMax) this.faults.push(`${this.running} run at once`)
    return (async () => {
      for (let left = Math.max(...waits); left > 0; left--) await turn()
      this.running--
      return this.#outcome(mine, count < chunk.length, false)
    })()
  }

  #begin(index: number): void {
    const { ordered, failing } = this.#plan
    if (this.#seen.has(index)) this.faults.push(`item ${index} is run twice`)
    if (this.#isOver && (!ordered || index > (failing as number)))
      this.faults.push(`item ${index} begins after a failure`)
    if (this.isClosed) this.faults.push(`item ${index} begins after the end`)
    this.#seen.add(index)
    this.held++
  }

  #outcome(mine: readonly number[], isPart: boolean, isNow: boolean): Outcome {
    const values = mine.map((index) => index * 10)
    if (!mine.includes(this.#plan.failing as number)) return isPart ? new Part(values, mine.length) : values
    this.failedFirst = mine[0]
    if (isNow) this.#isOver = true
    // Just before the flow is called with it.
    else void Promise.resolve().then(() => (this.#isOver = true))
    throw new RangeError(`item ${this.#plan.failing}`)
  }
}

async function judge(plan: Plan): Promise<void> {
  const indices = plan.items.map((_, index) => index)
  const isBroken = plan.isBroken && plan.source !== 'array'
  const { source, closed, isRead } = sourceOf(indices, plan.source, isBroken)
  const runs = new Runs(plan)
  const sizeNow = cycle(plan.sizes)
  const flow = new Flow<ArrayLike<number>, number[]>({
    sizeNow: () => Math.min(sizeNow(), plan.aheadMax ?? SIZE_MAX),
    run: runs.run,
    settled: () => {},
    ordered: plan.ordered,
    runsMax: plan.runsMax,
    refillsLate: plan.refillsLate,
    aheadMax: plan.aheadMax,
  })
  const taken: number[] = []
  let thrown: unknown
  let hasLeft = false
  try {
    for await (const out of outcomesOf(flow, readerOf(source, flow), undefined)) {
      // What the caller has in hand counts where items are bounded.
      assert.ok(runs.held <= (plan.aheadMax ?? (plan.runsMax + 1) * SIZE_MAX), `${runs.held} are held`)
      taken.push(...out)
      hasLeft = plan.leavesAt !== undefined && plan.leavesAt > 0 && taken.length >= plan.leavesAt
      if (hasLeft) break
      runs.held -= out.length
    }
  } catch (error) {
    thrown = error
  }
  runs.isClosed = true
  await flow.idle()
  assert.equal(runs.running, 0)
  assert.ok(hasLeft || thrown !== undefined || flow.leftCount === 0)
  assert.deepEqual(runs.faults, [])
  compare(plan, taken, thrown, hasLeft, runs.failedFirst)
  // A source is closed once, unless it has ended by itself.
  if (plan.source !== 'array') assert.ok(closed() <= 1 && (closed() === 1 || isRead() || isBroken))
}

/** What came out against what a loop would have made. */
function compare(
  plan: Plan,
  taken: readonly number[],
  thrown: unknown,
  hasLeft: boolean,
  failedFirst: number | undefined,
): void {
  const isBroken = plan.isBroken && plan.source !== 'array'
  const fails = plan.failing !== undefined && plan.failing < plan.items.length
  const expected = plan.items.map((_, index) => index * 10)
  if (plan.ordered) {
    // All before the failure, or before the reader left, and nothing behind it.
    assert.deepEqual(taken, expected.slice(0, taken.length))
    if (fails) assert.ok(taken.length <= plan.failing)
  } else assert.equal(new Set(taken).size, taken.length)
  if (thrown instanceof SyntaxError) {
    // It comes behind the outcomes that are there, and does not wait for those that are not.
    assert.ok(isBroken)
    // Nor does it run the items that were read for a chunk which was not full.
    const isAllThere =
      plan.sizes.every((size) => size === 1) && plan.items.every((turns) => turns === undefined)
    if (isAllThere && !fails) assert.deepEqual(taken, expected)
  } else if (thrown !== undefined) {
    assert.ok(fails && thrown instanceof RangeError && thrown.message === `item ${plan.failing}`)
    // A chunk fails as a whole.
    if (plan.ordered) assert.equal(taken.length, failedFirst)
  } else if (!hasLeft) {
    assert.ok(!fails && !isBroken, 'the failure was swallowed')
    assert.deepEqual(
      taken.toSorted((a, b) => a - b),
      expected,
    )
  }
}

/** Reading fails before a run ends with a part: what is behind the rest is not taken. */
const partAfterFailure: Plan = {
  items: [undefined, undefined, 0, undefined, undefined],
  failing: undefined,
  isBroken: true,
  source: 'iterable',
  ordered: true,
  runsMax: 2,
  aheadMax: 8,
  refillsLate: false,
  leavesAt: undefined,
  sizes: [5, 3, 1],
  parts: [1, 1, 0],
}

test('a flow is its oracle: order, bounds, the first error, one close', async () => {
  await fc.assert(fc.asyncProperty(plans, judge), { numRuns: 2000, examples: [[partAfterFailure]] })
})
