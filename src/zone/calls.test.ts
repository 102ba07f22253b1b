/**
 * What calls refuse, results, calls within calls, and the order of tasks.
 *
 * One zone of two workers serves most of the file. What calls return and throw: outcomes.test.ts.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { decode } from '../transport/index.ts'
import { Result, zone } from './index.ts'

const here = zone.create('calls', { workers: 2 })
after(() => here.close())

test('an argument that cannot be carried is refused at the call, by its path; nothing is sent', async () => {
  const ended = here.stats().ended
  const cases: [unknown, string, RegExp][] = [
    [{ user: { socket: Symbol('s') } }, 'TRANSPORT_REFUSED', /args\[0\]\.user\.socket/],
    [new WeakRef({}), 'TRANSPORT_REFUSED', /args\[0\]/],
    [
      {
        get x() {
          throw new RangeError('getter')
        },
      },
      '',
      /getter/,
    ],
  ]
  for (const [value, code, words] of cases) {
    await assert.rejects(
      here.run((x: unknown) => x, value),
      (error: { code?: string; message: string }) => {
        if (code !== '') assert.equal(error.code, code)
        assert.match(error.message, words)
        return true
      },
    )
  }
  const outer = 5
  await assert.rejects(
    here.run(() => outer),
    { code: 'FUNCTION_CAPTURES', message: /outer \(line \d+, column \d+/ },
  )
  assert.equal(here.stats().ended, ended)
})

test('a value that is not a function is refused by name, by a rejection and not a throw', async () => {
  for (const value of [5, null, undefined, 'x', {}, []]) {
    const calls = [() => here.run(value as never), () => zone.node.run(value as never)]
    for (const call of calls)
      await assert.rejects(call(), {
        code: 'ZONE_ARGUMENT',
        message: /the first argument must be a function/,
      })
    if (value !== 'x')
      await assert.rejects(here.broadcast(value as never), {
        code: 'ZONE_ARGUMENT',
      })
  }
  await assert.rejects(here.execute(5 as never), {
    code: 'ZONE_ARGUMENT',
    message: /the first argument/,
  })
  await assert.rejects(
    here.execute(() => 1, 5 as never),
    { code: 'ZONE_ARGUMENT', message: /^zone\.\w+\(\): args must/ },
  )
  await assert.rejects(
    here.execute(() => 1, [], 5 as never),
    { code: 'ZONE_ARGUMENT', message: /^zone\.\w+\(\): options must/ },
  )
  await assert.rejects(here.execute('./m.js', ''), {
    code: 'ZONE_ARGUMENT',
    message: /name of an export/,
  })
})

test('a result is decoded when it is looked at, once', async () => {
  const result = await here.execute(() => ({ a: [1, 2] }))
  assert.ok(result instanceof Result)
  assert.deepEqual(decode(result.payload, { mode: 'process' }), { a: [1, 2] })
  assert.throws(() => decode(result.payload), { code: 'TRANSPORT_PROCESS_FRAME' })
  const first = result.value
  assert.deepEqual(first, { a: [1, 2] })
  assert.equal(result.value, first)
  const empty = await here.execute(() => {})
  assert.deepEqual([empty.value, decode(empty.payload, { mode: 'process' })], [undefined, undefined])
  const copied = await here.execute(() => 'text')
  copied.payload.fill(0xff)
  assert.equal(copied.value, 'text')
})

const MODULE = new URL('../../test/zone/modules/math.mjs', import.meta.url)

test('tasks submit to their own zone and to others, and errors come through both hops', async () => {
  const other = zone.create('calls-other', { workers: 1 })
  try {
    const relay = async (ids: string[], depth: number): Promise<string> => {
      const { zone, currentTask } = await import('./index.js')
      const at = currentTask()?.zone ?? '?'
      if (depth === 0)
        throw Object.assign(new RangeError(`bottom in ${at}`), {
          code: 'E_BOTTOM',
        })
      const next = zone.get(ids[depth % ids.length])
      return `${at} ${await next.run((x: number) => x, depth)}`
    }
    assert.equal(await here.run(relay, ['calls', 'calls-other'], 3), 'calls 3')
    await assert.rejects(other.run(relay, ['calls'], 0), {
      code: 'E_BOTTOM',
      message: 'bottom in calls-other',
    })
  } finally {
    await other.close()
  }
})

test('a recursive task that submits to its own zone of overlapping tasks ends', async () => {
  const deep = zone.create('calls-deep', { workers: 2, tasksPerWorkerMax: 64 })
  try {
    const sum = await deep.execute(MODULE, 'treeSum', [
      'calls-deep',
      new URL('./index.js', import.meta.url).href,
      6,
    ])
    assert.equal(sum.value, 2 ** 6)
  } finally {
    await deep.close()
  }
})

test('a worker starts tasks first in, first out', async () => {
  const one = zone.create('calls-order', { workers: 1 })
  try {
    const push = (n: number) => ((globalThis as { seen?: number[] }).seen ??= []).push(n)
    await Promise.all(Array.from({ length: 500 }, (_, n) => one.run(push, n)))
    const seen = await one.run(() => (globalThis as { seen?: number[] }).seen)
    assert.deepEqual(
      seen,
      Array.from({ length: 500 }, (_, n) => n),
    )
  } finally {
    await one.close()
  }
})
