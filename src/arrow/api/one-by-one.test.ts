/**
 * A stream of one run at a time against the async generator that does the same: requests in their turns,
 * runs that wait, values that are awaited, failures, sources that break, leaving early.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { exitOf, fork, never, sleep } from '../../fiber/index.ts'
import { fromFiber, lift, liftAsync } from '../index.ts'

/** What the run of an input does. */
type Input = 'value' | 'later' | 'foreign' | 'thenable' | 'rejecting' | 'failure' | 'late failure'
/** How the source ends. */
type End = 'done' | 'throws' | 'no object' | 'a getter throws'
interface Request {
  readonly kind: 'next' | 'return' | 'throw'
  readonly isAwaited: boolean
}
interface Plan {
  readonly inputs: readonly Input[]
  readonly source: 'iterable' | 'async' | 'synchronous next' | 'foreign' | 'generator'
  readonly end: End
  readonly isWaiting: boolean
  readonly requests: readonly Request[]
}

const kinds: readonly Input[] = ['later', 'foreign', 'thenable', 'rejecting', 'failure', 'late failure']
const plans: fc.Arbitrary<Plan> = fc.record({
  inputs: fc.array(fc.constantFrom<Input>('value', 'value', 'value', ...kinds), { maxLength: 8 }),
  source: fc.constantFrom('iterable', 'async', 'synchronous next', 'foreign', 'generator'),
  end: fc.constantFrom('done', 'throws', 'no object', 'a getter throws'),
  isWaiting: fc.boolean(),
  requests: fc.array(
    fc.record({
      kind: fc.constantFrom<Request['kind']>('next', 'next', 'next', 'next', 'return', 'throw'),
      isAwaited: fc.boolean(),
    }),
    { maxLength: 12 },
  ),
})

const ForeignPromise = runInNewContext('Promise') as PromiseConstructor
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function ran(input: Input): unknown {
  if (input === 'failure') throw new RangeError(input)
  if (input === 'late failure') return turn().then(() => Promise.reject(new RangeError(input)))
  if (input === 'later') return turn().then(() => input)
  if (input === 'foreign') return ForeignPromise.resolve(input)
  if (input === 'thenable') return { then: (resolve: (value: string) => void) => resolve('of a thenable') }
  if (input !== 'rejecting') return input
  return { then: (_: unknown, reject: (why: Error) => void) => reject(new SyntaxError('of a thenable')) }
}

interface Source {
  readonly source: Iterable<Input> | AsyncIterable<Input>
  readonly closed: () => number
}

function sourceOf({ inputs, source, end }: Plan): Source {
  let [at, closed] = [0, 0]
  const next = (): IteratorResult<Input> => {
    if (at < inputs.length) return { done: false, value: inputs[at++] }
    if (end === 'throws') throw new TypeError('reading')
    if (end === 'no object') return 1 as never
    if (end === 'done') return { done: true, value: undefined }
    const get = (): never => assert.fail('a getter')
    return Object.defineProperty({}, 'done', { get }) as never
  }
  const leave = (): IteratorResult<Input> => {
    closed += 1
    throw new TypeError('closing')
  }
  const made = {
    iterable: { [Symbol.iterator]: () => ({ next, return: leave }) },
    async: { [Symbol.asyncIterator]: () => ({ next: async () => next(), return: async () => leave() }) },
    'synchronous next': { [Symbol.asyncIterator]: () => ({ next, return: leave }) },
    foreign: {
      [Symbol.asyncIterator]: () => ({
        next: () => new ForeignPromise((resolve) => resolve(next())),
        return: leave,
      }),
    },
    generator: (async function* (): AsyncGenerator<Input> {
      let isOver = false
      try {
        for (; at < inputs.length; at += 1) yield inputs[at]
        isOver = true
        next()
      } finally {
        if (!isOver) closed += 1
      }
    })(),
  }
  return { source: made[source] as unknown as Iterable<Input>, closed: () => closed }
}

/** As a loop would do it; an error of closing hides nothing. */
async function* oracle(source: Source['source']): AsyncGenerator<unknown, void, undefined> {
  const asynchronous = (source as Partial<AsyncIterable<Input>>)[Symbol.asyncIterator]
  const iterator = asynchronous?.call(source) ?? (source as Iterable<Input>)[Symbol.iterator]()
  let isRead = true
  try {
    for (;;) {
      isRead = false
      const next = await iterator.next()
      if (typeof next !== 'object') throw new TypeError(`Iterator result ${String(next)} is not an object`)
      if (next.done === true) return
      isRead = true
      yield await ran(next.value)
    }
  } finally {
    try {
      if (isRead) await iterator.return?.()
    } catch {}
  }
}

/** What each request was answered, in the order of the requests. */
async function answers(
  iterator: AsyncGenerator<unknown, void, undefined>,
  requests: readonly Request[],
): Promise<string[]> {
  const log: string[] = new Array<string>(requests.length)
  const pending: Promise<void>[] = []
  for (const [index, { kind, isAwaited }] of requests.entries()) {
    const answer = kind === 'throw' ? iterator.throw(new EvalError('thrown')) : iterator[kind]()
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

test('one at a time, a stream is the async generator of its runs, whoever asks, whenever', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const [ours, theirs] = [sourceOf(plan), sourceOf(plan)]
      const arrow = plan.isWaiting ? liftAsync(async (input: Input) => ran(input)) : lift(ran)
      const got = await answers(arrow.stream(ours.source), plan.requests)
      assert.deepEqual(got, await answers(oracle(theirs.source), plan.requests))
      assert.equal(ours.closed(), theirs.closed())
    }),
    { numRuns: 1500 },
  )
})

test('a run that fails aborts the signal that earlier runs have kept, with its reason', async () => {
  const signals: AbortSignal[] = []
  const arrow = liftAsync(async (input: number, { signal }) => {
    signals.push(signal)
    if (input === 2) throw new RangeError('two')
    return input
  })
  async function* source(): AsyncGenerator<number> {
    yield* [1, 2, 3]
  }
  const stream = arrow.stream(source())
  assert.deepEqual(await stream.next(), { done: false, value: 1 })
  await assert.rejects(stream.next(), /two/)
  assert.ok(signals.length === 2 && signals[0].aborted)
  assert.deepEqual(await stream.next(), { done: true, value: undefined })
})

test('a stream that is left closes its source once, also when it is left again', async () => {
  let closed = 0
  async function* source(): AsyncGenerator<number> {
    try {
      yield* [1, 2]
    } finally {
      await turn()
      closed += 1
    }
  }
  const stream = fromFiber(function* (input: number) {
    yield* sleep(1)
    return input
  }).stream(source())
  assert.deepEqual(await stream.next(), { done: false, value: 1 })
  await Promise.all([stream.return(), stream.return(), stream.throw(new EvalError('left')).catch(() => {})])
  assert.equal(closed, 1)
  assert.deepEqual(await stream.next(), { done: true, value: undefined })
})

test('the fiber that has started a stream ends its run when it is interrupted', async () => {
  const log: string[] = []
  const arrow = fromFiber(function* (input: number) {
    try {
      yield* never()
    } finally {
      log.push(`run ${input}`)
    }
  })
  let answer: Promise<unknown> | undefined
  const fiber = fork(function* () {
    answer = arrow.stream([7]).next()
    yield* exitOf(never())
  })
  await fiber.interrupt('enough')
  await assert.rejects(answer!, { name: 'InterruptedError' })
  assert.deepEqual(log, ['run 7'])
})

test('an endless stream of what is there at once leaves timers their turn, and can be left', async () => {
  let [isDue, isClosed] = [false, 0]
  async function* source(): AsyncGenerator<number> {
    try {
      for (;;) yield 1
    } finally {
      isClosed += 1
    }
  }
  const stream = lift((x: number) => x).stream(source())
  setTimeout(() => (isDue = true), 1)
  for await (const one of stream) if (isDue && one === 1) break
  assert.equal(isClosed, 1)
  const other = lift((x: number) => x).stream(source())
  const requests = Array.from({ length: 5000 }, () => other.next())
  const left = other.return()
  assert.ok((await Promise.all(requests)).every(({ value }) => value === 1))
  assert.deepEqual(await left, { done: true, value: undefined })
  assert.equal(isClosed, 2)
})

test('many requests at once are answered in their order, without a deep stack', async () => {
  const inputs = Array.from({ length: 50_000 }, (_, index) => index)
  const stream = lift((x: number) => x).stream(inputs)
  const all = await Promise.all([...inputs, -1].map(() => stream.next()))
  assert.deepEqual(
    all.map(({ value }) => value),
    [...inputs, undefined],
  )
})
