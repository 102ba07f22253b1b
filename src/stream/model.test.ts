/**
 * Pipelines drawn by seeds against plain arrays: sources that fail at each point or are slow, stages in any
 * order, consumers that are slow, leave early, or are interrupted at any time.
 *
 * The oracle computes what is emitted, and how it ends, with arrays. Time is that of the simulated scheduler.
 * Whatever happens: what was emitted is the beginning of what the oracle has, each source that was opened is
 * closed once, each finalizer runs once, and nothing is left.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Exit, type LostFiberError, exitOf, fork, sleep } from '../fiber/index.ts'
import { turn } from '../base/index.ts'
import { simulate } from '../test/played.test.support.ts'
import { Stream } from './index.ts'

/** What a stream emits, and whether it fails then. */
interface Trace {
  readonly items: readonly number[]
  readonly fails: boolean
}

type SourceKind = 'array' | 'iterable' | 'async' | 'web' | 'slow'
interface SourcePlan extends Trace {
  readonly kind: SourceKind
}

type StagePlan =
  | {
      readonly kind:
        | 'map'
        | 'filter'
        | 'scan'
        | 'tap'
        | 'ensuring'
        | 'acquire'
        | 'keep'
        | 'merge'
        | 'throttle'
        | 'async'
    }
  | { readonly kind: 'take' | 'drop' | 'takeWhile' | 'dropWhile' | 'buffer' | 'window'; readonly n: number }
  | { readonly kind: 'mapConcurrent' | 'flatMap'; readonly n: number; readonly failsAt: number }
  | { readonly kind: 'concat' | 'zip' | 'catchAll'; readonly other: SourcePlan }

const FAILURE = 'planned'

/** How often sources and finalizers have begun and ended. */
class Counts {
  opened = 0
  closed = 0
  begun = 0
  ensured = 0
  /** Of each stage with a finalizer. It runs, too, when an interrupt comes before the stream is opened. */
  readonly ensuring: { begun: number; ensured: number }[] = []
}

function sourceOf(plan: SourcePlan, counts: Counts): Stream<number, unknown> {
  const { kind, items, fails } = plan
  if (kind === 'array') return fails ? Stream.from(items).concat(Stream.fail(FAILURE)) : Stream.from(items)
  if (kind === 'slow') {
    const slow = Stream.from(items).tap((item) => sleep(1 + (item % 5)))
    return fails ? slow.concat(Stream.fail(FAILURE)) : slow
  }
  return Stream.from(() => {
    if (kind === 'async') return generated(plan, counts)
    counts.opened++
    let index = 0
    const ended = (): void => void counts.closed++
    const next = (): IteratorResult<number> => {
      if (index < items.length) return { done: false, value: items[index++] }
      ended()
      if (fails) throw FAILURE
      return { done: true, value: undefined }
    }
    const close = (): IteratorResult<number> => {
      ended()
      return { done: true, value: undefined }
    }
    if (kind === 'iterable') return { [Symbol.iterator]: () => ({ next, return: close }) }
    return new ReadableStream<number>(
      {
        pull(controller) {
          try {
            const { done, value } = next()
            if (done === true) controller.close()
            else controller.enqueue(value)
          } catch (error) {
            controller.error(error)
          }
        },
        cancel: ended,
      },
      { highWaterMark: 0 },
    )
  })
}

async function* generated({ items, fails }: Trace, counts: Counts): AsyncGenerator<number> {
  counts.opened++
  try {
    yield* items
    if (fails) throw FAILURE
  } finally {
    counts.closed++
  }
}

/** Streams of two items each, of which one fails. */
function parts(item: number, n: number, failsAt: number): Trace {
  return { items: item % 3 === n % 3 ? [] : [item, item + 100], fails: item === failsAt }
}

function streamOf(source: SourcePlan, stages: readonly StagePlan[], counts: Counts): Stream<number, unknown> {
  let stream = sourceOf(source, counts)
  let trace: Trace = source
  for (const stage of stages) {
    // Of two zipped streams that have as many items either may end first, so both end in the same way.
    const isTie = stage.kind === 'zip' && stage.other.items.length === trace.items.length
    const planned = isTie ? { ...stage, other: { ...stage.other, fails: trace.fails } } : stage
    stream = staged(stream, planned, counts)
    trace = next(trace, planned)
  }
  return stream
}

function staged(stream: Stream<number, unknown>, stage: StagePlan, counts: Counts): Stream<number, unknown> {
  switch (stage.kind) {
    case 'map':
      return stream.map((item) => item + 1)
    case 'filter':
      return stream.filter((item) => item % 3 !== 0)
    case 'scan':
      return stream.scan(0, (sum, item) => (sum + item) % 1000)
    case 'tap':
      return stream.tap((item) => (item % 2 === 0 ? sleep(item % 7) : undefined))
    case 'async':
      return stream.mapConcurrent(async (item) => item, { concurrency: 1 })
    case 'keep':
      return stream.catchAll((error) => Stream.fail(error))
    case 'merge':
      return stream.merge(Stream.empty)
    case 'throttle':
      return stream.throttle({ items: 2, perMs: 3 })
    case 'ensuring':
      return ensured(stream, counts)
    case 'acquire':
      return Stream.acquireRelease(
        function* () {
          yield* sleep(1)
          return void counts.begun++
        },
        () => void counts.ensured++,
      ).flatMap(() => stream)
    case 'take':
      return stream.take(stage.n)
    case 'drop':
      return stream.drop(stage.n)
    case 'takeWhile':
      return stream.takeWhile((item) => item % 13 < stage.n + 5)
    case 'dropWhile':
      return stream.dropWhile((item) => item % 13 < stage.n)
    case 'buffer':
      return stream.buffer(stage.n + 1)
    case 'window':
      return stream.window({ itemsMax: stage.n + 1 }).map((items) => items.reduce((sum, item) => sum + item))
    case 'mapConcurrent': {
      const { n, failsAt } = stage
      return stream.mapConcurrent(
        function* (item) {
          if (item % 2 === 0) yield* sleep(item % 11)
          if (item === failsAt) yield* Stream.fail(FAILURE).runDrain()
          return item * 2
        },
        { concurrency: n + 1 },
      )
    }
    case 'flatMap':
      return stream.flatMap((item) => {
        const { items, fails } = parts(item, stage.n, stage.failsAt)
        return sourceOf({ kind: item % 2 === 0 ? 'slow' : 'async', items, fails }, counts)
      })
    case 'concat':
      return stream.concat(sourceOf(stage.other, counts))
    case 'zip':
      return stream.zip(sourceOf(stage.other, counts)).map(([one, two]) => one * 10 + two)
    case 'catchAll':
      return stream.catchAll(() => sourceOf(stage.other, counts))
  }
}

function ensured(stream: Stream<number, unknown>, counts: Counts): Stream<number, unknown> {
  const own = { begun: 0, ensured: 0 }
  counts.ensuring.push(own)
  return Stream.from(() => {
    own.begun++
    return stream
  }).ensuring(function* () {
    yield* sleep(2)
    own.ensured++
  })
}

function oracleOf(source: Trace, stages: readonly StagePlan[]): Trace {
  return stages.reduce(next, source)
}

function next(trace: Trace, stage: StagePlan): Trace {
  const { items, fails } = trace
  switch (stage.kind) {
    case 'map':
      return { items: items.map((item) => item + 1), fails }
    case 'filter':
      return { items: items.filter((item) => item % 3 !== 0), fails }
    case 'scan': {
      let sum = 0
      return { items: items.map((item) => (sum = (sum + item) % 1000)), fails }
    }
    case 'take':
      return { items: items.slice(0, stage.n), fails: fails && items.length < stage.n }
    case 'drop':
      return { items: items.slice(stage.n), fails }
    case 'takeWhile': {
      const end = items.findIndex((item) => item % 13 >= stage.n + 5)
      return end < 0 ? trace : { items: items.slice(0, end), fails: false }
    }
    case 'dropWhile': {
      const start = items.findIndex((item) => item % 13 >= stage.n)
      return { items: start < 0 ? [] : items.slice(start), fails }
    }
    case 'window': {
      const lists: number[] = []
      for (let index = 0; index < items.length; index += stage.n + 1) {
        const list = items.slice(index, index + stage.n + 1)
        if (list.length === stage.n + 1 || !fails) lists.push(list.reduce((sum, item) => sum + item))
      }
      return { items: lists, fails }
    }
    case 'mapConcurrent': {
      const end = items.indexOf(stage.failsAt)
      const worked = end < 0 ? items : items.slice(0, end)
      return { items: worked.map((item) => item * 2), fails: fails || end >= 0 }
    }
    case 'flatMap': {
      const all: number[] = []
      for (const item of items) {
        const part = parts(item, stage.n, stage.failsAt)
        all.push(...part.items)
        if (part.fails) return { items: all, fails: true }
      }
      return { items: all, fails }
    }
    case 'concat':
      return fails ? trace : { items: [...items, ...stage.other.items], fails: stage.other.fails }
    case 'catchAll':
      return fails ? { items: [...items, ...stage.other.items], fails: stage.other.fails } : trace
    case 'zip': {
      const { other } = stage
      const count = Math.min(items.length, other.items.length)
      const pairs = items.slice(0, count).map((item, index) => item * 10 + other.items[index])
      return { items: pairs, fails: items.length > other.items.length ? other.fails : fails }
    }
    default:
      return trace
  }
}

const sources: fc.Arbitrary<SourcePlan> = fc.record({
  kind: fc.constantFrom<SourceKind>('array', 'iterable', 'async', 'web', 'slow'),
  items: fc.array(fc.nat(200), { maxLength: 12 }),
  fails: fc.boolean(),
})
const n = fc.nat(5)
const stagePlans: fc.Arbitrary<StagePlan> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      'map' as const,
      'filter' as const,
      'scan' as const,
      'tap' as const,
      'ensuring' as const,
      'acquire' as const,
      'keep' as const,
      'merge' as const,
      'throttle' as const,
      'async' as const,
    ),
  }),
  fc.record({
    kind: fc.constantFrom(
      'take' as const,
      'drop' as const,
      'takeWhile' as const,
      'dropWhile' as const,
      'buffer' as const,
      'window' as const,
    ),
    n,
  }),
  fc.record({ kind: fc.constantFrom('mapConcurrent' as const, 'flatMap' as const), n, failsAt: fc.nat(200) }),
  fc.record({
    kind: fc.constantFrom('concat' as const, 'zip' as const, 'catchAll' as const),
    other: sources,
  }),
)
const pipelines = fc.tuple(sources, fc.array(stagePlans, { maxLength: 5 }))

/** A source that is being read when its run ends closes behind it. */
async function checkClosed(counts: Counts): Promise<void> {
  await turn()
  assert.equal(counts.closed, counts.opened, 'each source is closed once')
  assert.equal(counts.ensured, counts.begun, 'each finalizer runs once')
  for (const { begun, ensured } of counts.ensuring) {
    assert.ok(ensured <= 1, 'no finalizer runs twice')
    assert.ok(ensured >= begun, 'each finalizer of what has begun runs')
  }
}

/** Nothing else has failed: what a fiber fails with whose items nobody needs any more is nobody's. */
function checkOthers(exit: Exit<unknown, unknown>, reported: readonly LostFiberError[]): void {
  assert.deepEqual([exit.kind === 'success' ? [] : exit.others, reported], [[], []])
}

/** How a consumer of items behaves: how long it takes for each. */
const PACES: readonly ((item: number) => unknown)[] = [
  () => undefined,
  (item) => sleep(item % 4),
  async () => {},
]

test('pipelines emit what arrays have, whatever the schedule, the source and the consumer', async () => {
  await fc.assert(
    fc.asyncProperty(pipelines, fc.nat(2), fc.nat(), async ([source, stages], pace, seed) => {
      const expected = oracleOf(source, stages)
      const counts = new Counts()
      const emitted: number[] = []
      const { exit, reported } = await simulate(
        seed,
        streamOf(source, stages, counts).runForEach((item) => {
          emitted.push(item)
          return PACES[pace](item)
        }),
      )
      assert.deepEqual(emitted, expected.items)
      if (expected.fails) assert.equal(exit.kind === 'failure' && exit.error, FAILURE)
      else assert.equal(exit.kind, 'success')
      checkOthers(exit, reported)
      await checkClosed(counts)
    }),
    { numRuns: 1500 },
  )
})

test('a consumer that leaves or fails at any item has closed all', async () => {
  await fc.assert(
    fc.asyncProperty(
      pipelines,
      fc.nat(8),
      fc.boolean(),
      fc.nat(),
      async ([source, stages], at, leaves, seed) => {
        const expected = oracleOf(source, stages)
        const counts = new Counts()
        const emitted: number[] = []
        const stream = streamOf(source, stages, counts)
        const failing = stream.runForEach(function* (item) {
          emitted.push(item)
          yield* sleep(item % 3)
          if (emitted.length > at) yield* Stream.fail('consumer').runDrain()
        })
        const leaving = stream.take(at + 1).runForEach((item) => void emitted.push(item))
        const { exit, reported } = await simulate(seed, leaves ? leaving : failing)
        assert.deepEqual(emitted, expected.items.slice(0, at + 1))
        const isReached = expected.items.length > at
        checkOthers(exit, reported)
        if (isReached && !leaves) assert.equal(exit.kind === 'failure' && exit.error, 'consumer')
        else assert.equal(exit.kind, expected.fails && !isReached ? 'failure' : 'success')
        await checkClosed(counts)
      },
    ),
    { numRuns: 1000 },
  )
})

test('an interrupt at any time closes sources, runs finalizers once, and leaves nothing', async () => {
  await fc.assert(
    fc.asyncProperty(pipelines, fc.nat(2), fc.nat(40), fc.nat(), async ([source, stages], pace, ms, seed) => {
      const expected = oracleOf(source, stages)
      const counts = new Counts()
      const emitted: number[] = []
      const { exit, reported } = await simulate(seed, function* () {
        const run = streamOf(source, stages, counts).runForEach((item) => {
          emitted.push(item)
          return PACES[pace](item)
        })
        const fiber = fork(exitOf(run))
        yield* sleep(ms / 2)
        const ended = yield* fiber.interrupt()
        const count = emitted.length
        yield* sleep(1000)
        assert.equal(emitted.length, count, 'nothing is emitted behind the end')
        return ended
      })
      assert.equal(exit.kind, 'success', String((exit as { defect?: unknown }).defect))
      assert.deepEqual(emitted, expected.items.slice(0, emitted.length))
      // It may have been failing when the interrupt came.
      if (exit.kind === 'success' && exit.value.kind !== 'success')
        for (const other of exit.value.others) assert.ok(other.kind === 'failure' && other.error === FAILURE)
      assert.deepEqual(reported, [])
      await checkClosed(counts)
    }),
    { numRuns: 1500 },
  )
})

test('a loop over a pipeline that is left at any item has closed all', async () => {
  await fc.assert(
    fc.asyncProperty(pipelines, fc.nat(8), async ([source, stages], at) => {
      const expected = oracleOf(source, stages)
      const counts = new Counts()
      const emitted: number[] = []
      let failure: unknown
      try {
        for await (const item of streamOf(source, stages, counts)) if (emitted.push(item) > at) break
      } catch (error) {
        failure = error
      }
      assert.deepEqual(emitted, expected.items.slice(0, at + 1))
      if (expected.items.length <= at) assert.equal(failure, expected.fails ? FAILURE : undefined)
      // What has failed ahead of the item at which the loop is left is nobody's.
      else assert.equal(failure, undefined)
      await checkClosed(counts)
    }),
    { numRuns: 60 },
  )
})
