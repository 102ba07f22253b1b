/**
 * Depth, size and tiers: no shape of an arrow overflows the stack or takes more than linear time, and all of
 * it works where code may not be generated.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { share } from '../base/part.test.support.ts'
import { Exit, Schedule } from '../fiber/index.ts'
import { zone } from '../zone/index.ts'
import { type Arrow, fail, id, lift, liftAsync, succeed } from './index.ts'
import { generate } from './run/generate.ts'
import { HOT_RUNS } from './build/node.ts'

const STAGES = share(100_000)
const increment: Arrow<number, number, never, 'sync'> = lift((x: number) => x + 1)

function grown<A>(first: A, grow: (arrow: A) => A, times = STAGES): A {
  let arrow = first
  for (let turn = 0; turn < times; turn += 1) arrow = grow(arrow)
  return arrow
}

test('a chain of 100,000 stages, nested to the left', () => {
  assert.equal(grown(increment, (arrow) => arrow.andThen(increment)).run(0), STAGES + 1)
})

test('a chain of 100,000 stages, nested to the right', () => {
  assert.equal(grown(increment, (arrow) => increment.andThen(arrow)).run(0), STAGES + 1)
})

test('a chain of 100,000 stages, compiled when it is hot, does the same however it nests', () => {
  for (const arrow of [
    grown(increment, (chain) => chain.andThen(increment)),
    grown(increment, (chain) => increment.andThen(chain)),
  ])
    for (let run = 0; run < HOT_RUNS + 2; run += 1) assert.equal(arrow.run(run), run + STAGES + 1)
})

test('ten times as many stages take no longer than ten times: what is quadratic would not end here', () => {
  assert.equal(grown(increment, (arrow) => arrow.andThen(increment), STAGES * 10).run(0), STAGES * 10 + 1)
  const right = grown(increment, (arrow) => increment.andThen(arrow), STAGES * 10)
  assert.equal(right.run(0), STAGES * 10 + 1)
  assert.match(right.explain(), /./)
})

test('100,000 of the others, one in the other', async () => {
  assert.equal(grown(increment, (arrow) => arrow.zipWith(increment, (a, b) => Math.max(a, b))).run(1), 2)
  assert.equal(grown(increment, (arrow) => arrow.keepInput()).run(1), 1)
  assert.equal(grown(increment, (arrow) => arrow.named('n')).run(1), 2)
  assert.equal(grown(fail('f'), (arrow) => arrow.mapError((e) => e)).runExit(1).kind, 'failure')
  assert.equal(
    grown(fail(0), (arrow) => arrow.catchAll((e) => fail(e + 1)) as never).runExit(1).kind,
    'failure',
  )
  const waits = liftAsync(async (x: number) => x)
  assert.equal(
    await grown<Arrow<number, number, never, 'async'>>(waits, (arrow) => arrow.map((x) => x + 1)).run(0),
    STAGES,
  )
})

test('20,000 stages that wait, each inside of the next, that end or are interrupted', async () => {
  type Waits = Arrow<number, number, unknown, 'async'>
  const wraps: Record<string, (arrow: Waits) => Waits> = {
    timeout: (arrow) => arrow.timeout(2 ** 31 - 1),
    retry: (arrow) => arrow.retry(Schedule.recurs(1)),
    'on this thread': (arrow) => arrow.on(zone.node),
  }
  const value = liftAsync(async (x: number) => x + 1)
  const broken = liftAsync((): Promise<number> => {
    throw new RangeError('deep inside')
  })
  const deep = Math.ceil(STAGES / 5)
  for (const [name, wrap] of Object.entries(wraps)) {
    assert.equal(await grown<Waits>(value, wrap, deep).run(0), 1, name)
    assert.equal((await grown<Waits>(broken, wrap, deep).runExit(0)).kind, 'defect', name)
    const controller = new AbortController()
    const waits = liftAsync((_: number) => {
      setImmediate(() => controller.abort('enough'))
      return new Promise<number>(() => {})
    })
    const exit = await grown<Waits>(waits, wrap, deep).runExit(0, controller.signal)
    assert.deepEqual(exit, Exit.interruption('enough'), name)
  }
})

test('flatMap that makes 100,000 arrows', () => {
  const down = (n: number): Arrow<unknown, string> =>
    n === 0 ? succeed('ground') : succeed(n).flatMap((m) => down(m - 1))
  assert.equal(down(STAGES).run(1), 'ground')
})

test('an arrow that contains itself twice, twenty times over', () => {
  assert.equal(grown(increment, (arrow) => arrow.andThen(arrow), 20).run(0), 2 ** 20)
  assert.equal(typeof grown(increment, (arrow) => arrow.andThen(arrow), 60).explain(), 'string')
})

test('a large arrow does the same when it is hot', () => {
  const arrow = grown(increment, (chain) => chain.andThen(increment).andThen(id()), 300)
  for (let run = 0; run < 300; run += 1) assert.equal(arrow.run(run), run + 301)
})

test('a promise that a synchronous stage makes is its value, however large the arrow', () => {
  const promise = Promise.resolve(1)
  const small = lift((_: number) => promise)
  assert.equal(
    grown(increment, (chain) => chain.andThen(id()))
      .andThen(small)
      .run(0),
    promise,
  )
  assert.equal(small.run(0), promise)
})

test('pairs that nobody asks for are not made', () => {
  const arrow = increment
    .merge(increment)
    .andThen(increment.first<number>())
    .andThen(increment.split(increment))
    .map(([a, b]) => a + b)
  const code = String(generate([arrow]))
  assert.equal(code.match(/\[/g)?.length, 1)
  assert.equal(generate([arrow])?.(1), 7)
})

test('arrows of one shape and the same functions share their code', () => {
  const add = (by: number): Arrow<number, number, never, 'sync'> => lift((x: number) => x + by)
  add(1).andThen(add(2)).compiled()
  const { Function: engine } = globalThis
  let made = 0
  globalThis.Function = new Proxy(engine, {
    construct: (target, given) => (made++, Reflect.construct(target, given) as object),
  })
  try {
    assert.equal(add(3).andThen(add(4)).compiled().run(0), 7)
    assert.equal(made, 0)
    increment.andThen(lift((x: number) => x - 7)).compiled()
    assert.equal(made, 1)
  } finally {
    globalThis.Function = engine
  }
})

test('what flatMap makes is let go of, measured or not', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  let made = 0
  let left = 0
  const registry = new FinalizationRegistry(() => (left += 1))
  const arrow = lift((x: number) => x).flatMap((x) => {
    const inner = liftAsync(async () => x)
    made += 1
    registry.register(inner, undefined)
    return inner
  })
  for (let run = 0; run < 64 * 20; run += 1) await arrow.run(run)
  for (let turn = 0; turn < 50 && left < made - 1; turn += 1) {
    gc()
    await new Promise(setImmediate)
  }
  assert.ok(left >= made - 1, `${made - left} of ${made} are kept`)
  assert.match(arrow.explain(), /; measured in 20 of 1,280 runs\nflatMap +20 calls measured,/)
})

test('all of it works where code may not be generated', () => {
  const files = ['api/arrow', 'differential', 'api/explain', 'laws'].map((name) =>
    fileURLToPath(new URL(`./${name}.test.js`, import.meta.url)),
  )
  for (const file of files) {
    const words = ['--disallow-code-generation-from-strings', '--test', file]
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const child = spawnSync(process.execPath, words, { encoding: 'utf8', env })
    assert.equal(child.status, 0, child.stdout)
  }
})
