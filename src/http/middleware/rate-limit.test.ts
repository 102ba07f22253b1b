/**
 * Rate limits: exactly the configured number of requests passes, at once and over time.
 *
 * The clock is a parameter of the limit.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Store, store } from '../../store/index.ts'
import { onServer } from '../cores.test.support.ts'
import { createApp } from '../server.ts'
import { withMiddleware, use } from '../app/middleware.ts'
import { rateLimit } from './rate-limit.ts'
import { take } from './rates/counts.ts'
import { jsonErrors } from '../app/status-error.ts'

onServer('a rate limit: a burst at once, then the rate over time', async (start, core) => {
  let now = 1_000_000
  const limit = rateLimit({
    requestsMax: 3,
    windowMs: 3000,
    name: `test ${core}`,
    now: () => now,
  })
  const server = await start({
    routes: { '/': withMiddleware(() => 'ok', limit) },
    error: jsonErrors(),
  })
  const get = async (): Promise<[number, string | null, string | null]> => {
    const { status, headers } = await fetch(server.url)
    return [status, headers.get('ratelimit'), headers.get('retry-after')]
  }
  const name = `"test%20${core}"`
  assert.deepEqual(await get(), [200, `${name};r=2;t=0`, null])
  assert.deepEqual(await get(), [200, `${name};r=1;t=0`, null])
  assert.deepEqual(await get(), [200, `${name};r=0;t=1`, null])
  assert.deepEqual(await get(), [429, `${name};r=0;t=1`, '1'])
  now += 1000
  assert.deepEqual(await get(), [200, `${name};r=0;t=1`, null])
  assert.deepEqual(await get(), [429, `${name};r=0;t=1`, '1'])
})

const today = 1.76e12
const later = Date.UTC(2040, 5)
for (const start of [5000, today, later]) {
  test(`a rate limit never passes more than its limit in any window; the time is ${start}`, () => {
    using counts = store.create<number>(`rate limit test ${start}`)
    const [most, spanMs] = [7, 1000]
    const passed: number[] = []
    let now = start
    for (let step = 0; step < 5000; step += 1) {
      now += (step * 7919) % 97
      if (take(counts, 'k', { most, spanMs, now }).allowed) passed.push(now)
    }
    assert.ok(passed.length > 1000)
    // At most `most` at once, and one more for each part of the span that goes by.
    for (let from = 0; from < passed.length; from += 1) {
      for (let to = from; to < Math.min(from + 20, passed.length); to += 1) {
        const allowed = most + ((passed[to] - passed[from]) * most) / spanMs
        assert.ok(to - from + 1 <= allowed + 1e-9, `${to - from + 1} in ${passed[to] - passed[from]} ms`)
      }
    }
  })
}

test('a rate limit passes exactly its limit, at any rate and time', () => {
  const rates = [
    ...[1, 2, 3, 6, 7, 60, 130, 999, 1000, 6000, 7000, 7001].flatMap((most) => [
      [most, 1000],
      [most, 60_000],
      [most, 86_400_000],
    ]),
    [100_000, 1000],
    [9973, 1000],
    [3, 7],
    [10, 1],
  ] as [number, number][]
  for (const now of [0, 1, 5000, today, today + 1, later]) {
    const used = new Map<string, number>()
    // No store: that forgets by the real time, which goes on.
    const counts = {
      update: (key: string, change: (value?: number) => number) => used.set(key, change(used.get(key))),
    } as unknown as Store<number>
    for (const [most, spanMs] of rates) {
      const key = `${most}/${spanMs}`
      const burst = (at: number): number => {
        let passed = 0
        while (take(counts, key, { most, spanMs, now: at }).allowed) passed += 1
        return passed
      }
      assert.equal(burst(now), most, `${key} at ${now}`)
      // Those that come back after a while are exactly those whose time has come, and all after the window.
      const whileMs = Math.ceil(spanMs / 3)
      assert.equal(burst(now + whileMs), Math.floor((whileMs * most) / spanMs), `${key} later than ${now}`)
    }
  }
})

onServer('limits of one client do not count in each other', async (start, core) => {
  const key = (): string => `one of ${core}`
  const server = await start({
    routes: {
      ...use({ '/login': () => 'in' }, rateLimit({ requestsMax: 2, key })),
      ...use({ '/api': () => 'api' }, rateLimit({ requestsMax: 1000, key })),
    },
    error: jsonErrors(),
  })
  const ask = async (path: string): Promise<number> => (await fetch(server.url + path)).status
  const login = [await ask('/login'), await ask('/login'), await ask('/login')]
  assert.deepEqual([...login, await ask('/api')], [200, 200, 429, 200])
})

test('the addresses of one network of IPv6 are one client, and one entry', async () => {
  using counts = store.create<number>('rate limit of networks')
  const app = createApp({
    routes: use({ '/': 'ok' }, rateLimit({ requestsMax: 2, store: counts })),
    trustProxy: 1,
  })
  const statusFor = async (client: string): Promise<number> =>
    (await app.inject('/', { headers: { 'x-forwarded-for': client } })).status
  assert.equal(await statusFor('2001:db8:1:1::1'), 200)
  assert.equal(await statusFor('2001:db8:1:1:ffff::2'), 200)
  for (let n = 3; n < 50; n++) assert.equal(await statusFor(`2001:db8:1:1::${n}`), 429)
  assert.equal(await statusFor('2001:db8:1:2::1'), 200)
  assert.equal(counts.stats().entries, 2)
})
