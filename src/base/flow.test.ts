/**
 * A flow against a plain oracle: random sources, bounds, runs that end at once, late or with an error, and
 * readers that leave early.
 *
 * What runs, what is held and what comes out is compared at every step.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Flow, readerOf } from './index.ts'

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
}

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
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A source that counts how often it was closed. */
function sourceOf(
  items: readonly number[],
  kind: Plan['source'],
  isBroken: boolean,
): { source: Iterable<number> | AsyncIterable<number>; closed: () => number } {
  if (kind === 'array') return { source: items, closed: () => 0 }
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
  return { source: source as Iterable<number>, closed: () => closed }
}

async function judge(plan: Plan): Promise<void> {
  const indices = plan.items.map((_, index) => index)
  const isBroken = plan.isBroken && plan.source !== 'array'
  const { source, closed } = sourceOf(indices, plan.source, isBroken)
  let [running, begun, held, isOver] = [0, 0, 0, false]
  // An assertion in a run would be its failure.
  const faults: string[] = []
  const work = (index: number): number | Promise<number> => {
    if (index !== begun++) faults.push(`item ${index} is run out of order`)
    if (isOver) faults.push(`item ${index} begins after a failure`)
    held++
    const { [index]: turns } = plan.items
    const end = (): number => {
      if (index === plan.failing) {
        if (turns === undefined) isOver = true
        // Just before the flow is called with it.
        else void Promise.resolve().then(() => (isOver = true))
        throw new RangeError(`item ${index}`)
      }
      return index * 10
    }
    if (turns === undefined) return end()
    running++
    if (running > plan.runsMax) faults.push(`${running} run at once`)
    return (async () => {
      for (let left = turns; left > 0; left--) await turn()
      running--
      return end()
    })()
  }
  const flow = new Flow<ArrayLike<number>, number>({
    run: (chunk) => work(chunk[0]),
    settled: () => {},
    ordered: plan.ordered,
    runsMax: plan.runsMax,
    refillsLate: plan.refillsLate,
    aheadMax: plan.aheadMax,
  })
  const taken: number[] = []
  let thrown: unknown
  try {
    for await (const out of flow.outcomes(readerOf(source, flow), undefined)) {
      // What the caller has in hand counts where items are bounded.
      assert.ok(held <= (plan.aheadMax ?? plan.runsMax + 1), `${held} are held`)
      taken.push(out)
      if (taken.length === plan.leavesAt) break
      held--
    }
  } catch (error) {
    thrown = error
  }
  await flow.idle()
  assert.equal(running, 0)

  assert.deepEqual(faults, [])
  compare(plan, taken, thrown)
  // A source is closed once, unless it has ended by itself.
  if (plan.source !== 'array')
    assert.ok(closed() <= 1 && (closed() === 1 || begun === plan.items.length || isBroken))
}

/** What came out against what a loop would have made. */
function compare(plan: Plan, taken: readonly number[], thrown: unknown): void {
  const isBroken = plan.isBroken && plan.source !== 'array'
  const fails = plan.failing !== undefined && plan.failing < plan.items.length
  const hasLeft = plan.leavesAt !== undefined && taken.length === plan.leavesAt
  const expected = plan.items.map((_, index) => index * 10)
  if (plan.ordered) {
    // All before the failure, or before the reader left, and nothing behind it.
    assert.deepEqual(taken, expected.slice(0, taken.length))
    if (fails) assert.ok(taken.length <= plan.failing)
  } else assert.equal(new Set(taken).size, taken.length)
  if (thrown instanceof SyntaxError) {
    // It comes behind the outcomes that are there, and does not wait for those that are not.
    assert.ok(isBroken)
    const isAllThere = plan.items.every((turns) => turns === undefined)
    if (isAllThere && !fails) assert.deepEqual(taken, expected)
  } else if (thrown !== undefined) {
    assert.ok(fails && thrown instanceof RangeError && thrown.message === `item ${plan.failing}`)
    if (plan.ordered) assert.equal(taken.length, plan.failing)
  } else if (!hasLeft) {
    assert.ok(!fails && !isBroken, 'the failure was swallowed')
    assert.deepEqual(
      taken.toSorted((a, b) => a - b),
      expected,
    )
  }
}

test('a flow is its oracle: order, bounds, the first error, one close', async () => {
  await fc.assert(fc.asyncProperty(plans, judge), { numRuns: 2000 })
})
