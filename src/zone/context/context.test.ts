/**
 * Contexts that calls take with them, against a model: what each call of random trees finds is what the
 * nearest call above it has set, whatever runs beside it.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { inZone, makeZone } from '../api/zones.test.support.ts'
import { type TraceContext, carry, currentTask, currentTrace, withTrace, zone } from '../index.ts'
import {
  type Seen,
  type Tree,
  call,
  functionsOn,
  registerTenant,
  tenant,
  user,
} from './context.test.support.ts'

const ONE = makeZone({ workers: 1 })
const MANY = makeZone({ workers: 2, tasksPerWorkerMax: 8, callDepthMax: 64 })
const NESTED = makeZone({ workers: 4, tasksPerWorkerMax: 64 })
/** Its workers do not load the module that registers the storages. */
const BARE = makeZone({ workers: 1, tasksPerWorkerMax: 64 })
after(() => Promise.all([ONE, MANY, NESTED, BARE].map((each) => each.close())))
registerTenant()

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function trees(depth: number): fc.Arbitrary<Tree> {
  const calls = depth === 0 ? fc.constant([]) : fc.array(trees(depth - 1), { maxLength: 3 })
  const name = fc.option(fc.constantFrom('Ann', 'Bob', 'Eve'), { nil: undefined })
  const how = fc.constantFrom<Tree['how']>('execute', 'map', 'stream')
  const timeoutMs = fc.option(fc.integer({ min: 100_000, max: 200_000 }), { nil: undefined })
  const parts = fc.record({ zone: fc.constantFrom(MANY.id, NESTED.id), how, user: name, timeoutMs, calls })
  return parts.map(({ user, timeoutMs, ...tree }) => ({
    ...tree,
    ...(user === undefined ? {} : { user }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }))
}

/** What the calls of a tree must find. */
function check(
  tree: Tree,
  seen: Seen,
  name: string | undefined,
  traceparent: string | undefined,
  mostMs: number,
): void {
  assert.equal(seen.user, name)
  assert.equal(seen.traceparent, traceparent)
  // Registered by callers alone.
  assert.equal(seen.tenant, undefined)
  const ownMs = Math.min(mostMs, tree.timeoutMs ?? Infinity)
  if (ownMs === Infinity) assert.equal(seen.remainingMs, undefined)
  else assert.ok(seen.remainingMs !== undefined && seen.remainingMs <= ownMs && seen.remainingMs > 0)
  assert.equal(seen.calls.length, tree.calls.length)
  tree.calls.forEach((each, index) =>
    check(each, seen.calls[index], tree.user ?? name, traceparent, seen.remainingMs ?? Infinity),
  )
}

test('each call of random trees finds what the nearest call above it has set', async () => {
  const caller = fc.record({
    tree: trees(2),
    name: fc.option(fc.constantFrom('Tim', 'Zoe'), { nil: undefined }),
    isTraced: fc.boolean(),
  })
  const runs = fc.asyncProperty(fc.array(caller, { minLength: 1, maxLength: 8 }), async (callers) => {
    await Promise.all(
      callers.map(async ({ tree, name, isTraced }) => {
        const named = (): Promise<Seen> =>
          name === undefined ? call(tree) : user.run(name, () => call(tree))
        const seen = await (isTraced ? withTrace({ traceparent: TRACE }, named) : named())
        check(tree, seen, name, isTraced ? TRACE : undefined, Infinity)
      }),
    )
  })
  await fc.assert(runs, { numRuns: 40 })
})

test('a worker that has not registered a name passes its value on', async () => {
  // The module of NESTED registers the user; BARE and the tenant are registered nowhere but here.
  const tree = (zone: string, how: Tree['how'], calls: Tree[]): Tree => ({ zone, how, calls })
  const path = tree(BARE.id, 'bare', [tree(NESTED.id, 'execute', [])])
  const seen = await user.run('Ann', () => tenant.run('t-1', () => call(path)))
  assert.deepEqual([seen.user, seen.tenant], ['Ann', undefined])
  const none = await call(path)
  assert.equal(none.user, undefined)
  await functionsOn(NESTED).visit(path)
  // Registered now, in one worker of one zone.
  await functionsOn(ONE).registerTenant()
  const through = tree(BARE.id, 'bare', [tree(ONE.id, 'execute', [])])
  const both = await user.run('Ann', () => tenant.run('t-1', () => call(through)))
  assert.deepEqual([both.user, both.tenant], ['Ann', 't-1'])
})

test('forks of join, stolen or not, find the value', async () => {
  await inZone({ workers: 2, executor: 'work-stealing' }, async (own) => {
    const sums = ['Ann', 'Bob'].map((name) => user.run(name, () => functionsOn(own).joined(name, 9)))
    for (const sum of await Promise.all(sums)) assert.equal(sum, 512)
  })
})

test('a value is copied like an argument, and one that cannot travel is named by its context', async () => {
  const about = carry('about', new AsyncLocalStorage<object>())
  await assert.rejects(
    about.run({ weak: new WeakMap() }, () => ONE.run(() => 1)),
    { code: 'TRANSPORT_REFUSED', message: /^context\.about\.weak cannot be transported/ },
  )
  await assert.rejects(
    about.run({}, () => ONE.run((given: object) => given, { weak: new WeakMap() })),
    { code: 'TRANSPORT_REFUSED', message: /^args\[0\]\.weak cannot be transported/ },
  )
  // Neither error has left anything behind.
  assert.equal(await about.run({ a: 1 }, () => ONE.run((n: number) => n + 1, 1)), 2)
})

test('arguments of any number and size travel beside a context', async () => {
  const count = (...args: unknown[]): number => args.length
  const pair = (one: number, other: number): number => one + other
  const large = new Uint8Array(1 << 20).fill(7)
  await user.run('Ann', async () => {
    assert.equal(await ONE.run(count), 0)
    assert.equal(await ONE.run(count, undefined, null, 8), 3)
    assert.deepEqual(await ONE.run((bytes: Uint8Array) => bytes, large), large)
    assert.equal(await zone.node.run(count, 1), 1)
    assert.equal((await ONE.execute(pair, [1, 2])).value, 3)
  })
})

test('a broadcast finds nothing, and a death of the worker changes nothing for the next task', async () => {
  await inZone({ workers: 1, graceMs: 20_000 }, async (own) => {
    await user.run('Ann', async () => {
      await own.broadcast(async () => {
        const { look } = await import('./context.test.support.ts')
        ;(globalThis as { found?: object }).found = look()
      })
      await assert.rejects(functionsOn(own).die(), { code: 'WORKER_DIED' })
      const of = await own.run(() => (globalThis as { found?: Seen }).found)
      assert.equal(of?.user, undefined)
      const found = await functionsOn(own).look()
      assert.equal(found.user, 'Ann')
    })
    assert.equal((await functionsOn(own).look()).user, undefined)
  })
})

test('a malformed trace is left out, as W3C Trace Context demands', () => {
  const zeros = (count: number): string => '0'.repeat(count)
  const id = '0af7651916cd43dd8448eb211c80319c'
  const all = { traceparent: TRACE, tracestate: 'a=1', baggage: 'tenant=7' }
  const table: [TraceContext, TraceContext | undefined][] = [
    [all, all],
    [{ baggage: 'a=1' }, { baggage: 'a=1' }],
    [{ tracestate: 'a=1' }, undefined],
    [{}, undefined],
    [{ traceparent: TRACE.toUpperCase(), tracestate: 'a=1' }, undefined],
    [{ traceparent: `${TRACE}-00` }, undefined],
    [{ traceparent: `01${TRACE.slice(2)}-later` }, { traceparent: `01${TRACE.slice(2)}-later` }],
    [{ traceparent: `01${TRACE.slice(2)}later` }, undefined],
    [{ traceparent: `ff${TRACE.slice(2)}` }, undefined],
    [{ traceparent: `00-${zeros(32)}-b7ad6b7169203331-01` }, undefined],
    [{ traceparent: `00-${id}-${zeros(16)}-01` }, undefined],
    [{ traceparent: `${TRACE}, ${TRACE}` }, undefined],
    [{ traceparent: TRACE, tracestate: 'a'.repeat(513) }, { traceparent: TRACE }],
    [{ baggage: 'a'.repeat(8193) }, undefined],
    [{ baggage: 'a=\r\nb' }, undefined],
  ]
  for (const [given, expected] of table) withTrace(given, () => assert.deepEqual(currentTrace(), expected))
  assert.equal(currentTrace(), undefined)
  withTrace({ traceparent: TRACE }, () => withTrace({}, () => assert.equal(currentTrace(), undefined)))
})

test('a name belongs to one storage of a thread', () => {
  const storage = new AsyncLocalStorage<string>()
  assert.equal(carry('twice', storage), storage)
  assert.equal(carry('twice', storage), storage)
  assert.throws(() => carry('twice', new AsyncLocalStorage<string>()), {
    code: 'CONTEXT_EXISTS',
    facts: { name: 'twice' },
  })
  for (const name of ['', 'a'.repeat(129), 7 as unknown as string])
    assert.throws(() => carry(name, storage), { code: 'ZONE_ARGUMENT' })
  assert.equal(carry('twice'), storage)
  assert.equal(carry<string>('made'), carry<string>('made'))
  for (const none of [null, {}, { getStore: () => 1 }])
    assert.throws(() => carry('none', none as never), { code: 'ZONE_ARGUMENT', message: /AsyncLocalStorage/ })
})

test('a thread carries 32 names', async () => {
  const codes = await ONE.run(async () => {
    const { carry } = await import('../index.ts')
    const { AsyncLocalStorage } = await import('node:async_hooks')
    for (let count = 0; ; count++) {
      try {
        carry(`many-${count}`, new AsyncLocalStorage<string>())
      } catch (error) {
        return [count <= 32, (error as { code: string }).code]
      }
    }
  })
  assert.deepEqual(codes, [true, 'ZONE_ARGUMENT'])
})

test('a task that registers a name by its own import finds the value, and no other task does', async () => {
  await inZone({ workers: 1, tasksPerWorkerMax: 8 }, async (own) => {
    const late = async (): Promise<unknown> => {
      await new Promise((resolve) => setImmediate(resolve))
      const { user } = await import('./context.test.support.ts')
      await new Promise((resolve) => setImmediate(resolve))
      return user.getStore()
    }
    const names = [undefined, 'Ann', undefined, 'Bob']
    const runs = names.map((name) =>
      name === undefined ? own.run(late) : user.run(name, () => own.run(late)),
    )
    assert.deepEqual(await Promise.all(runs), names)
    const look = (): Promise<Seen> => functionsOn(own).look() as Promise<Seen>
    assert.deepEqual([(await user.run('Eve', look)).user, (await look()).user], ['Eve', undefined])
  })
})

test('zone.node runs in the context of its caller', async () => {
  const found = await user.run('Ann', () =>
    zone.node.with({ timeoutMs: 60_000 }).run(async () => {
      await null
      return [user.getStore(), (currentTask()?.remainingMs ?? 0) > 0]
    }),
  )
  assert.deepEqual(found, ['Ann', true])
})
