/**
 * Counts that several servers share, without the servers: what is reported, and what is accepted.
 *
 * Over a network they are tested in src/fleet/limits.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp } from '../../index.ts'
import { store } from '../../../store/index.ts'
import { use } from '../../app/middleware.ts'
import { rateLimit } from '../rate-limit.ts'
import { SharedCounts } from './shared.ts'

const NOW = Date.UTC(2026, 5)

test('a shared limit counts what others have admitted, and reports what it has', async () => {
  const counts = new SharedCounts('one')
  const limit = rateLimit({ requestsMax: 5, windowMs: 2 ** 30, key: () => 'k', name: 'n', shared: 'one' })
  const app = createApp({ routes: use({ '/': 'ok' }, limit) })
  const get = async (): Promise<[number, string | null]> => {
    const { status, headers } = await app.inject('/')
    return [status, headers.get('ratelimit')?.split(';')[1] ?? null]
  }
  const key = `5/${2 ** 30} "n" k`
  assert.deepEqual(await get(), [200, 'r=4'])
  assert.equal(counts.add(key, 2), true)
  assert.deepEqual(await get(), [200, 'r=1'])
  assert.deepEqual([...counts.admitted(10, false)], [[key, 2]])
  assert.deepEqual([...counts.admitted(10, false)], [])
  assert.deepEqual(await get(), [200, 'r=0'])
  assert.deepEqual(await get(), [429, 'r=0'])
  assert.deepEqual([...counts.admitted(10, false)], [[key, 1]])
})

test('what others admit beyond the limit is made up for by refusals', () => {
  let now = NOW
  const counts = new SharedCounts('debt', () => now)
  const take = (): boolean => counts.take('2/60000 k', 2, 60_000).allowed
  assert.equal(counts.add('2/60000 k', 6), true)
  for (const [ms, allowed] of [
    [0, false],
    [149_000, false],
    [1000, true],
    [0, false],
    [30_000, true],
  ] as const) {
    now += ms
    assert.equal(take(), allowed, `at ${now - NOW} ms`)
  }
})

test('a report that is late has only what still counts', () => {
  let now = NOW
  const counts = new SharedCounts('late', () => now)
  for (let request = 0; request < 10; request++) {
    assert.ok(counts.take('2/60000 k', 2, 60_000).allowed)
    now += 30_000
  }
  assert.ok(counts.take('2/60000 k', 2, 60_000).allowed)
  assert.deepEqual([...counts.admitted(10, true)], [['2/60000 k', 1]])
  now += 60_000
  assert.deepEqual([...counts.admitted(10, true)], [])
})

test('batches count once, in whichever order they arrive', () => {
  const counts = new SharedCounts('seen')
  const rows: [server: string, number: number, batches: number, first: number, missed: number][] = [
    ['a', 0, 1, 0, 0],
    ['a', 1, 2, 1, 0],
    ['a', 1, 2, 2, 0],
    ['a', 0, 1, 2, 0],
    ['a', 4, 3, 2, 0],
    ['a', 8, 3, 6, 1],
    ['a', 3, 3, 9, 0],
    ['b', 7, 3, 5, 0],
  ]
  for (const [server, number, batches, first, missed] of rows)
    assert.deepEqual(counts.unseen(server, number, batches), { first, missed }, `${server} ${number}`)
})

test('what is not a report is not counted', () => {
  const counts = new SharedCounts('refused')
  const key = '2/60000 k'
  const refused: [unknown, unknown][] = [
    [7, 1],
    ['', 1],
    ['k', 1],
    ['0/1000 k', 1],
    ['2/0 k', 1],
    ['9999999999/60000 k', 1],
    ['2/2147483648 k', 1],
    ['2/1000', 1],
    [`2/1000 ${'x'.repeat(256)}`, 1],
    [key, 0],
    [key, -1],
    [key, 1.5],
    [key, NaN],
    [key, '1'],
    [key, 129],
  ]
  for (const [given, requests] of refused) assert.equal(counts.add(given, requests), false, String(given))
  assert.ok(counts.take(key, 2, 60_000).allowed)
  for (let time = 0; time < 100; time++) assert.equal(counts.add(key, 128), true)
  assert.ok(counts.take(key, 2, 60_000).waitMs <= 3_810_000)
})

test('a long key is counted by its hash, and of many clients a part is reported at a time', () => {
  const counts = new SharedCounts('many')
  const long = `9/60000 "all" ${'x'.repeat(300)}`
  counts.take(long, 9, 60_000)
  counts.take(`${long}y`, 9, 60_000)
  const keys = [...counts.admitted(10, false)].map(([key]) => key)
  assert.equal(new Set(keys).size, 2)
  for (const key of keys) assert.match(key, /^9\/60000 #[\w-]{43}$/)
  for (let client = 0; client < 100; client++) counts.take(`9/60000 ${client}`, 9, 60_000)
  const first = [...counts.admitted(60, false)]
  const rest = [...counts.admitted(60, false)]
  assert.deepEqual([first.length, rest.length], [60, 40])
})

test('options that a shared limit cannot have are refused', () => {
  using counts = store.create<number>('of a shared limit')
  for (const options of [{ store: counts }, { now: () => 0 }])
    assert.throws(() => rateLimit({ requestsMax: 1, shared: 'x', ...options }), {
      code: 'HTTP_ARGUMENT',
      message: /rateLimit\(\): shared must be left out with store or now/,
    })
  assert.throws(() => rateLimit({ requestsMax: 1, shared: 7 as never }), { code: 'HTTP_ARGUMENT' })
})
