/**
 * The CPU time of requests by samples, where each of a route takes the same: by a clock that only work moves,
 * all that have begun before a sample count as often as there are.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { meters } from '../base/index.ts'
import { native } from '../native/index.ts'
import { type Middleware, createApp, serverTiming, use } from '../http/index.ts'
import { until } from '../base/wait.test.support.ts'
import { metricsText, startMetrics } from './index.ts'
import { read, sum } from './reading.test.support.ts'

let nowMs = 0
Object.assign(native, { threadCpuNs: () => nowMs * 1e6 })
startMetrics()

const burn = (ms: number): void => void (nowMs += ms)

async function handled(): Promise<string> {
  burn(1)
  await turn()
  burn(2)
  await turn()
  burn(4)
  return 'done'
}

let opened: Promise<void> | undefined
const guard: Middleware = async (request, next) => {
  burn(1)
  await opened
  if (request.headers.has('denied')) throw new Response('', { status: 401 })
  return next()
}

const { inject } = createApp({
  routes: {
    '/at-once': () => {
      burn(3)
      return 'done'
    },
    '/later': handled,
    '/failed': async () => {
      await turn()
      burn(5)
      throw new Response('', { status: 418 })
    },
    ...use({ '/timed': handled }, serverTiming()),
    ...use({ '/guarded': handled }, guard, serverTiming()),
  },
})

function cpuMs(route: string, status: number): number {
  const labels = { http_route: route, http_response_status_code: `${status}` }
  return sum(read(metricsText(), false), 'corespun_http_server_request_cpu_time_seconds_total', labels) * 1000
}

for (const { route, ms, status = 200 } of [
  { route: '/at-once', ms: 3 },
  { route: '/later', ms: 7 },
  { route: '/failed', ms: 5, status: 418 },
])
  test(`requests of ${route} have ${ms} ms each, whichever are measured`, async () => {
    const many = async (count: number): Promise<void> => {
      await Promise.all(Array.from({ length: count }, () => inject(route)))
    }
    await many(1)
    assert.equal(Math.round(cpuMs(route, status)), ms)
    await many(500)
    const ofSamples = Math.round(cpuMs(route, status)) / ms
    assert.ok(Number.isInteger(ofSamples) && ofSamples > 1 && ofSamples <= 501, `${ofSamples} of 501`)
    // The next one is measured once there was no sample for a while.
    let count = 501
    await until(async () => {
      meters.look?.()
      await many(1)
      return Math.round(cpuMs(route, status)) === ms * ++count
    })
  })

test('what middleware measures counts once, each request for itself', async () => {
  for (let count = 0; count < 20; count++) await inject('/timed')
  assert.equal(Math.round(cpuMs('/timed', 200)), 20 * 7)
})

test('where middleware measures later what samples count for, no counter goes down', async () => {
  const denied = { headers: { denied: 'yes' } }
  opened = turn()
  await Promise.all(Array.from({ length: 300 }, (_, at) => inject('/guarded', at % 2 === 0 ? denied : {})))
  let least = cpuMs('/guarded', 401)
  for (let count = 0; count < 300; count++) {
    await inject('/guarded', denied)
    const now = cpuMs('/guarded', 401)
    assert.ok(now >= least, `${now} after ${least}`)
    least = now
  }
  assert.ok(least > 0)
})
