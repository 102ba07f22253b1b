/**
 * The outcomes of a flow against an async generator that yields the same: requests in their turns, several at
 * once, values that are awaited, failures, leaving early.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Flow, outcomesOf, readerOf } from '../index.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** What the run of an item does. */
type Item = 'value' | 'later' | 'thenable' | 'rejecting thenable' | 'failure'
/** What is asked for, and whether its answer is awaited before the next. */
interface Request {
  readonly kind: 'next' | 'return' | 'throw'
  readonly isAwaited: boolean
}
interface Plan {
  readonly items: readonly Item[]
  readonly source: 'iterable' | 'async' | 'generator'
  readonly runsMax: number
  readonly aheadMax: number | undefined
  readonly requests: readonly Request[]
  /** Whether the source throws when it is closed, if nothing is read ahead: it may have ended otherwise. */
  readonly isBroken: boolean
}

const plans: fc.Arbitrary<Plan> = fc.record({
  items: fc.array(
    fc.constantFrom<Item>('value', 'value', 'later', 'thenable', 'rejecting thenable', 'failure'),
    { maxLength: 8 },
  ),
  source: fc.constantFrom('iterable', 'async', 'generator'),
  runsMax: fc.integer({ min: 1, max: 3 }),
  aheadMax: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  requests: fc.array(
    fc.record({
      kind: fc.constantFrom<Request['kind']>('next', 'next', 'next', 'next', 'return', 'throw'),
      isAwaited: fc.boolean(),
    }),
    { maxLength: 12 },
  ),
  isBroken: fc.boolean(),
})

/** The item's outcome, or a promise of it: what a run returns. */
function ran(item: Item, index: number): unknown {
  if (item === 'failure') throw new RangeError(`item ${index}`)
  if (item === 'later') return turn().then(() => [index])
  return [index]
}

/** What is yielded for an item whose run has ended. */
function yielded(item: Item, index: number): unknown {
  if (item === 'thenable') return { then: (resolve: (value: number) => void) => resolve(index) }
  if (item !== 'rejecting thenable') return index
  return { then: (_: unknown, reject: (why: Error) => void) => reject(new SyntaxError(`value ${index}`)) }
}

interface Source {
  readonly source: Iterable<number> | AsyncIterable<number>
  readonly closed: () => number
}

function sourceOf({ items, source, runsMax, aheadMax, isBroken }: Plan): Source {
  let [at, closed] = [0, 0]
  const next = (): IteratorResult<number> =>
    at < items.length ? { done: false, value: at++ } : { done: true, value: undefined }
  const end = (): IteratorResult<number> => {
    closed += 1
    if (isBroken && runsMax === 1 && aheadMax === undefined) throw new TypeError('closing')
    return { done: true, value: undefined }
  }
  const generator = async function* (): AsyncGenerator<number> {
    let isOver = false
    try {
      for (let one = next(); one.done !== true; one = next()) yield one.value
      isOver = true
    } finally {
      if (!isOver) end()
    }
  }
  if (source === 'generator') return { source: generator(), closed: () => closed }
  const made =
    source === 'iterable'
      ? { [Symbol.iterator]: () => ({ next, return: end }) }
      : { [Symbol.asyncIterator]: () => ({ next: async () => next(), return: async () => end() }) }
  return { source: made as Iterable<number>, closed: () => closed }
}

/** As outcomes would be, were they a loop. */
async function* oracle(plan: Plan): AsyncGenerator<unknown, void, undefined> {
  for await (const index of sourceOf(plan).source) {
    await ran(plan.items[index], index)
    yield yielded(plan.items[index], index)
  }
}

function subject(plan: Plan): {
  readonly outcomes: AsyncGenerator<unknown, void, undefined>
  readonly closed: () => number
} {
  const { source, closed } = sourceOf(plan)
  const flow = new Flow<ArrayLike<number>, unknown>({
    run: (items) => ran(plan.items[items[0]], items[0]),
    settled: (run) => {
      if (!run.hasFailed) run.value = yielded(plan.items[run.first], run.first)
    },
    ordered: true,
    runsMax: plan.runsMax,
    refillsLate: false,
    aheadMax: plan.aheadMax,
  })
  return { outcomes: outcomesOf(flow, readerOf(source, flow), undefined), closed }
}

/** What each request was answered, in the order of the requests. */
async function answers(
  iterator: AsyncGenerator<unknown, void, undefined>,
  requests: readonly Request[],
): Promise<string[]> {
  const log: string[] = new Array<string>(requests.length)
  const pending: Promise<void>[] = []
  for (const [index, { kind, isAwaited }] of requests.entries()) {
    const answer =
      kind === 'next'
        ? iterator.next()
        : kind === 'return'
          ? iterator.return()
          : iterator.throw(new EvalError('thrown'))
    const logged = answer.then(
      ({ done, value }) => void (log[index] = `${kind}: ${done} ${value}`),
      (error: Error) => void (log[index] = `${kind}: ${error.name} ${error.message}`),
    )
    pending.push(logged)
    if (isAwaited) await logged
  }
  await Promise.all(pending)
  return log
}

test('outcomes are those of an async generator, whoever asks, whenever', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const { outcomes, closed } = subject(plan)
      assert.deepEqual(await answers(outcomes, plan.requests), await answers(oracle(plan), plan.requests))
      assert.ok(closed() <= 1)
    }),
    { numRuns: 1500 },
  )
})

/** A flow that runs one item at a time. */
const oneByOne = (): Flow<ArrayLike<number>, number> =>
  new Flow({ run: (one) => one[0], settled: () => {}, ordered: true, runsMax: 1, refillsLate: false })

test('many requests at once are answered in their order, without a deep stack', async () => {
  const items = Array.from({ length: 50_000 }, (_, index) => index)
  const flow = oneByOne()
  const outcomes = outcomesOf(flow, readerOf(items, flow), undefined)
  const all = await Promise.all([...items, -1].map(() => outcomes.next()))
  assert.deepEqual(
    all.map(({ value }) => value),
    [...items, undefined],
  )
})

test('an aborted signal answers a request whose item has not arrived', async () => {
  const flow = oneByOne()
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }
  const controller = new AbortController()
  const outcomes = outcomesOf(flow, readerOf(silent, flow), controller.signal)
  const answer = outcomes.next()
  controller.abort(new Error('enough'))
  await assert.rejects(answer, /enough/)
  assert.deepEqual(await outcomes.next(), { value: undefined, done: true })
})

test('it is an async generator to those who look at it', async () => {
  const { outcomes } = subject({
    items: ['value'],
    source: 'async',
    runsMax: 1,
    aheadMax: undefined,
    requests: [],
    isBroken: false,
  })
  assert.equal(outcomes[Symbol.asyncIterator](), outcomes)
  assert.equal(Object.prototype.toString.call(outcomes), '[object AsyncGenerator]')
  const seen: unknown[] = []
  for await (const one of outcomes) seen.push(one)
  assert.deepEqual(seen, [0])
})
