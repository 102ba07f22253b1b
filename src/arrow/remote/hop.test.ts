/**
 * Remote stages: where they run, what they carry, what is refused, and what ends them.
 *
 * One zone of one worker; its `pid` is the thread's number.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isMainThread, threadId } from 'node:worker_threads'
import { settled } from '../../base/wait.test.support.ts'
import { Schedule } from '../../fiber/index.ts'
import { store } from '../../store/index.ts'
import { zone } from '../../zone/index.ts'
import {
  ArrowError,
  effect,
  exported,
  fail,
  id,
  ifThenElse,
  lift,
  liftAsync,
  succeed,
  whileDo,
} from '../index.ts'
import { doubledByModule } from './hop.test.support.ts'

let cpu: ReturnType<typeof zone.create>
before(() => {
  cpu = zone.create('arrow-hop', { workers: 1, graceMs: 100 })
})
after(() => cpu.close())

const where = async (): Promise<number> =>
  (process.getBuiltinModule('node:worker_threads') as { threadId: number }).threadId

test('a placed part runs in the zone, what follows here', async () => {
  const arrow = liftAsync(where)
    .on(cpu)
    .merge(lift(() => threadId))
  const [there, here] = await arrow.run(undefined)
  assert.ok(isMainThread)
  assert.notEqual(there, here)
  assert.equal(here, threadId)
})

test('inputs and outputs of a placed part may be streams', async () => {
  async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of chunks) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      yield* parts
    }
    if (rest !== '') yield rest
  }
  async function count(items: AsyncIterable<string>): Promise<number> {
    let all = 0
    for await (const _ of items) all++
    return all
  }
  const file = (text: string): AsyncIterable<Uint8Array> => new Blob([text]).stream()
  const parse = lift(lines).on(cpu)
  const found: string[] = []
  for await (const line of await parse.run(file('a\nb\nc'))) found.push(line)
  assert.deepEqual(found, ['a', 'b', 'c'])
  // Joined in one hop, the stream between the stages stays in the worker.
  assert.equal(await parse.andThen(liftAsync(count).on(cpu)).run(file('1\n2')), 2)
  const counts: number[] = []
  const files = ['x', 'x\ny', ''].map(file)
  for await (const each of lift(lines).andThen(liftAsync(count)).on(cpu).stream(files)) counts.push(each)
  assert.deepEqual(counts, [1, 2, 0])
  // The store drops the arrow: a stream that is the input is read all the same, and one inside is refused.
  const own = lift(({ items }: { items: AsyncIterable<string> }) => items).on(cpu)
  store.get('corespun.arrow.plans').clear()
  await assert.rejects(own.run({ items: lines(file('z')) }), { code: 'TRANSPORT_REFUSED' })
})

test('a stream between the stages of an arrow leads back to a zone of one worker', async () => {
  const [a, b] = ['arrow-back', 'arrow-there'].map((name) => zone.create(name, { workers: 1 }))
  // More than a window, 4096 items.
  const rows = lift(async function* (count: number) {
    for (let row = 0; row < count; row++) yield row
  })
  const doubled = lift(async function* (items: AsyncIterable<number>) {
    for await (const item of items) yield item * 2
  })
  const total = liftAsync(async (items: AsyncIterable<number>): Promise<number> => {
    let sum = 0
    for await (const item of items) sum += item
    return sum
  })
  try {
    const there = rows.on(a).andThen(doubled.on(b)).andThen(total.on(a))
    const same = rows
      .on(a)
      .andThen(doubled.on(a.with({ priority: 'low' })))
      .andThen(total.on(a))
    const all = [there.run(5000), same.run(6000), ...[1, 2, 3].map((count) => there.run(count))]
    assert.deepEqual(await settled(Promise.all(all), 'the arrows'), [24_995_000, 35_994_000, 0, 2, 6])
  } finally {
    await Promise.all([a.close({ timeoutMs: 1000 }), b.close({ timeoutMs: 1000 })])
  }
})

test('a call to a zone cannot be a stage itself, and the error contains the remedy', async () => {
  const { add } = cpu.module<{ add(a: number, b?: unknown): number }>(
    new URL('./hop.test.support.js', import.meta.url),
  )
  await assert.rejects(liftAsync(add).run(1), {
    code: 'ARROW_ARGUMENT',
    message: /in its own thread: write liftAsync\(\(input\) => call\(input\)\), or pass context\.signal/,
  })
})

test(
  'parts that alternate between two zones of one worker each end, however many run',
  { timeout: 120_000 },
  async () => {
    const other = zone.create('arrow-other', { workers: 1 })
    try {
      const inc = lift((x: number) => x + 1)
      const there = inc.on(cpu).andThen(inc).on(other).andThen(inc).on(cpu)
      const back = there.andThen(there).on(other)
      const runs = Array.from({ length: 20 }, (_, index) => back.run(index))
      assert.deepEqual(
        await Promise.all(runs),
        runs.map((_, index) => index + 6),
      )
    } finally {
      await other.close()
    }
  },
)

test('all kinds of stages travel', async () => {
  const arrow = lift((x: number) => x + 1)
    .first<number>()
    .andThen(lift(([a, b]: readonly [number, number]) => a * b))
    .andThen(
      ifThenElse(
        lift((x: number) => x > 10),
        id<number>(),
        whileDo(
          lift((x: number) => x < 100),
          lift((x: number) => x * 2),
        ),
      ),
    )
    .zipWith(succeed(7), (x, seven) => x + seven)
    .tap(() => undefined)
    .named('all')
  assert.equal(await arrow.on(cpu).run([1, 2]), arrow.run([1, 2]))
  assert.equal(await arrow.on(cpu).run([4, 5]), arrow.run([4, 5]))
})

test('neighbours in one zone share a hop, and explain counts it', async () => {
  const one = lift((x: number) => x + 1).on(cpu)
  const arrow = one.andThen(lift((x: number) => x * 2).on(cpu)).andThen(one)
  const before_ = cpu.stats().ended
  assert.equal(await arrow.run(1), 5)
  assert.equal(cpu.stats().ended - before_, 1)
  assert.equal(await arrow.run(2), 7)
  assert.equal(cpu.stats().ended - before_, 2)
  assert.match(arrow.explain(), /on zone arrow-hop +2 hops, each .* in the worker \+ .* on the way/)
})

test('a run is one task in each zone, whichever worker takes it, and in a replaced worker', async () => {
  const inc = lift((x: number) => x + 1)
  await using other = zone.create('arrow-three-workers', { workers: 3 })
  for (const [where_, runs] of [
    [cpu, 3],
    [other, 60],
  ] as const) {
    const arrow = inc.andThen(inc).on(where_)
    const before_ = where_.stats().ended
    const values = await Promise.all(Array.from({ length: runs }, (_, index) => arrow.run(index)))
    assert.deepEqual(
      values,
      values.map((_, index) => index + 2),
    )
    assert.equal(where_.stats().ended - before_, runs)
  }
  const arrow = inc.on(cpu)
  assert.equal(await arrow.run(1), 2)
  await assert.rejects(
    cpu.run(() => process.exit()),
    { code: 'WORKER_DIED' },
  )
  const before_ = cpu.stats().ended
  assert.equal(await arrow.run(2), 3)
  assert.equal(cpu.stats().ended - before_, 1)
})

test('a plan that the store of plans has dropped travels with a second task', async () => {
  const arrow = lift((x: number) => x + 1).on(cpu)
  store.get('corespun.arrow.plans').clear()
  const before_ = cpu.stats().ended
  assert.equal(await arrow.run(1), 2)
  assert.equal(cpu.stats().ended - before_, 2)
  assert.equal(await arrow.run(2), 3)
  assert.equal(cpu.stats().ended - before_, 3)
})

test('a run whose signal is aborted before the worker has the plan leaves the plan usable', async () => {
  const arrow = lift((x: number) => x + 1).on(cpu)
  const controller = new AbortController()
  const run = arrow.runExit(1, controller.signal)
  controller.abort('enough')
  assert.deepEqual(await run, { kind: 'interruption', reason: 'enough', others: [] })
  assert.equal(await arrow.run(2), 3)
})

test('10,000 neighbours in one zone are one hop, made in linear time', { timeout: 60_000 }, async () => {
  const one = lift((x: number) => x + 1).on(cpu)
  const two = lift((x: number) => x * 2).on(cpu)
  let row = one
  for (let hops = 1; hops < 10_000; hops += 1) row = row.andThen(one)
  assert.equal(await row.run(0), 10_000)
  assert.match(row.explain(), /on zone arrow-hop +1 hop, /)
  // Rows that begin alike are rows of their own.
  assert.equal(await row.andThen(two).run(1), 20_002)
  assert.equal(await two.andThen(one).andThen(two).run(1), 6)
  assert.equal(await two.andThen(one).run(1), 3)
  let twice = one
  for (let turn = 0; turn < 60; turn += 1) twice = twice.andThen(twice)
  assert.equal(typeof twice.explain(), 'string')
})

test('explain shows what workers measured of each stage there', async () => {
  const arrow = lift((x: number) => x + 1)
    .andThen(liftAsync(async (x) => x * 2))
    .on(cpu)
  for (let run = 0; run < 130; run += 1) assert.equal(await arrow.run(run), (run + 1) * 2)
  const plan = arrow.explain()
  assert.match(plan, /on zone arrow-hop +130 hops/)
  assert.match(plan, /^arrow, async, .*; measured in 3 of 130 runs\n/)
  assert.equal(plan.match(/\b[23] calls measured, mean [\d.]+ [nµm]?s/g)?.length, 2, plan)
})

test('explain shows the figures of a hop of one stage too', async () => {
  const arrow = lift((x: number) => x + 1).on(cpu)
  for (let run = 0; run < 5; run += 1) assert.equal(await arrow.run(run), run + 1)
  const [, hop, stage] = arrow.explain().split('\n')
  assert.match(hop, /on zone arrow-hop +5 hops/)
  assert.match(stage, /function +5 calls measured, mean [\d.]+ [nµm]?s/)
})

test('a stage that captures variables is refused when it is placed, by name', () => {
  const secret = Math.random()
  const arrow = lift((x: number) => x + secret)
  assert.throws(() => arrow.on(cpu), { code: 'FUNCTION_CAPTURES', message: /secret/ })
  assert.throws(
    () =>
      arrow
        .map((x) => x)
        .first()
        .on(cpu),
    { code: 'FUNCTION_CAPTURES' },
  )
})

test('a constant that cannot travel is refused when it is placed', () => {
  assert.throws(() => succeed(Symbol('no')).on(cpu), { name: 'TransportError' })
  assert.throws(() => fail('x').retry(Schedule.forever).on(cpu), { name: 'TransportError' })
})

test('an exported function may use its module', async () => {
  assert.throws(() => lift(doubledByModule).on(cpu), { code: 'FUNCTION_CAPTURES' })
  const url = new URL('./hop.test.support.js', import.meta.url).href
  assert.equal(await lift(exported(url, doubledByModule)).on(cpu).run(4), 8)
})

test('failures come back as failures, defects as defects', async () => {
  const parse = effect(
    (text: string) => JSON.parse(text) as unknown,
    (thrown) => (thrown as Error).name,
  ).on(cpu)
  assert.deepEqual(await parse.runExit('{'), { kind: 'failure', error: 'SyntaxError', others: [] })
  const broken = lift((): number => {
    throw new RangeError('broken')
  }).on(cpu)
  const exit = await broken.catchAll(() => succeed(1)).runExit(undefined)
  assert.equal(exit.kind, 'defect')
  assert.ok(exit.kind === 'defect' && exit.defect instanceof RangeError)
})

test('interruption and timeout cancel the task in the zone', async () => {
  const forever = liftAsync(
    (_: undefined, { signal }) =>
      new Promise<string>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
  ).on(cpu)
  const controller = new AbortController()
  const exit = forever.runExit(undefined, controller.signal)
  controller.abort('enough')
  assert.deepEqual(await exit, { kind: 'interruption', reason: 'enough', others: [] })
  const late = await forever.timeout(20).runExit(undefined)
  assert.ok(late.kind === 'failure' && late.error instanceof ArrowError)
  assert.equal(
    await lift(() => 'free again')
      .on(cpu)
      .run(undefined),
    'free again',
  )
})

test('a loop without end in the zone is ended by its timeout', async () => {
  const spin = lift((): number => {
    for (;;);
  })
  const exit = await spin.on(cpu).timeout(30).runExit(undefined)
  assert.equal(exit.kind, 'failure')
  assert.equal(
    await lift(() => 1)
      .on(cpu)
      .run(undefined),
    1,
  )
})

test('through remembers for all threads, also inside of a placed part', async () => {
  const seen = store.create<number>('arrow-through', {})
  const slow = liftAsync(async (key: string) => key.length + Math.random())
  const here = slow.through(seen)
  const there = slow.through(seen).on(cpu)
  const first = await there.run('abc')
  assert.equal(await here.run('abc'), first)
  assert.equal(seen.get('abc'), first)
  const keyed = lift((x: number) => x * 2).through(seen, (x) => `number ${x}`)
  assert.equal(await keyed.run(4), 8)
  assert.equal(seen.get('number 4'), 8)
  const failing = fail('no').through(seen as never, () => 'failed')
  assert.equal((await failing.runExit(undefined)).kind, 'failure')
  assert.equal(seen.has('failed'), false)
  store.get('arrow-through')?.close()
})

test('placed on this thread it stays here, and may capture', async () => {
  const near = threadId
  assert.equal(
    await lift(() => near)
      .on(zone.node)
      .run(undefined),
    near,
  )
})

test('a stage of a placed part is compiled there like here', async () => {
  const arrow = lift((x: number) => x + 1)
    .map((x) => x * 2)
    .on(cpu)
  for (let run = 0; run < 300; run += 1) assert.equal(await arrow.run(run), (run + 1) * 2)
})
