/**
 * Fibers go on in the context of their fork: whatever wakes them, and whoever runs beside them.
 * Scripts of random steps are walked in random contexts, many at once.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import fc from 'fast-check'
import { type CpuTime, carry, measureCpu, withTrace, zone } from '../../zone/index.ts'
import { type Fiber, type Operation, all, fork, on, sleep, timeout, yieldNow } from '../index.ts'

const before: Fiber<string | undefined> = fork(waits())
const user = carry('user', new AsyncLocalStorage<string>())
const steps = ['yield', 'sleep', 'promise', 'fork', 'all', 'call', 'timeout'] as const
type Step = (typeof steps)[number]

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const WORKER = zone.create('fiber-context', { workers: 1 })
test.after(() => WORKER.close())

function* waits() {
  yield* sleep(1)
  return user.getStore()
}

async function found(): Promise<string | undefined> {
  const { AsyncLocalStorage } = await import('node:async_hooks')
  const { carry } = await import('../../zone/index.ts')
  const key = Symbol.for('test.user')
  const kept = globalThis as { [key]?: AsyncLocalStorage<string> }
  return (kept[key] ??= carry('user', new AsyncLocalStorage<string>())).getStore()
}

function* walk(name: string | undefined, script: readonly Step[]): Operation<number, unknown> {
  let checks = 0
  for (const [index, step] of script.entries()) {
    const rest = script.slice(index + 1)
    if (step === 'yield') yield* yieldNow()
    else if (step === 'sleep') yield* sleep(0.1)
    else if (step === 'promise') yield* fork(later).join()
    else if (step === 'fork') checks += yield* fork(walk(name, rest)).join()
    else if (step === 'all') yield* all([walk(name, []), sleep(0)])
    else if (step === 'timeout') yield* timeout(60_000, walk(name, ['sleep']))
    else assert.equal(yield* on(WORKER, found), name)
    assert.equal(user.getStore(), name)
    checks++
  }
  return checks
}

test('every step of fibers finds the value of the code that has forked them', async () => {
  const one = fc.record({
    name: fc.option(fc.constantFrom('Ann', 'Bob'), { nil: undefined }),
    script: fc.array(fc.constantFrom(...steps), { minLength: 1, maxLength: 5 }),
  })
  const property = fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 12 }), async (many) => {
    const run = async ({ name, script }: (typeof many)[number]): Promise<void> => {
      const walked = (): Fiber<number, unknown> => fork(walk(name, script))
      const checks = await (name === undefined ? walked() : user.run(name, walked)).join()
      assert.ok(checks >= script.length)
    }
    await Promise.all(many.map(run))
    assert.equal(user.getStore(), undefined)
  })
  await fc.assert(property, { numRuns: 40 })
})

test('a fiber that was forked before anything was carried has no context', async () => {
  assert.equal(await before.join(), undefined)
})

test('fibers that start from the queue or are interrupted are in their context too', async () => {
  const seen: (string | undefined)[] = []
  function* nested(depth: number): Operation<void> {
    try {
      if (depth > 0) fork(nested(depth - 1))
      yield* sleep(60_000)
    } finally {
      seen.push(user.getStore())
    }
  }
  const fiber = user.run('Ann', () => fork(nested(150)))
  await later()
  await fiber.interrupt()
  assert.deepEqual(
    seen,
    Array.from({ length: 151 }, () => 'Ann'),
  )
})

test('a trace crosses with on()', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const traced = async (): Promise<string | undefined> =>
    (await import('../../zone/index.ts')).currentTrace()?.traceparent
  function* two() {
    yield* sleep(0.1)
    return yield* on(WORKER, traced)
  }
  assert.equal(await withTrace({ traceparent }, () => fork(two()).join()), traceparent)
  assert.equal(await fork(two()).join(), undefined)
})

test('a fiber that goes on costs whoever has forked it', async () => {
  function* burning(used: CpuTime, others: readonly CpuTime[]): Operation<void> {
    for (let round = 0; round < 3; round++) {
      yield* sleep(0.1)
      const before = others.map(({ cpuMs }) => cpuMs)
      const begunMs = used.cpuMs
      for (let left = 1e6; left > 0 && used.cpuMs < begunMs + 1; left--);
      assert.ok(used.cpuMs >= begunMs + 1)
      assert.deepEqual(
        others.map(({ cpuMs }) => cpuMs),
        before,
      )
    }
  }
  const forks: CpuTime[] = []
  const fibers = Array.from({ length: 3 }, () =>
    measureCpu((used) => {
      forks.push(used)
      return fork(function* () {
        yield* yieldNow()
        yield* burning(
          used,
          forks.filter((each) => each !== used),
        )
      })
    }),
  )
  await Promise.all(fibers.map((fiber) => fiber.join()))
})
