/**
 * Each request of a server whose workers are killed, get stuck and are reloaded under load has exactly one
 * status. The oracle is a shared map in which each handler notes that it has begun, and what clients receive.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { WAIT_MS_MAX, until } from '../base/wait.test.support.ts'
import { serve } from '../http/index.ts'
import { store } from '../store/index.ts'
import { zone } from '../zone/index.ts'
import { metrics, metricsText } from './index.ts'
import { type Samples, read, sum } from './reading.test.support.ts'

metrics()

const APP = new URL('./mortal-app.test.support.js', import.meta.url)
/** What happens to the workers, a round of requests for each. */
const FATES = ['/dies', '/stuck', '/dies', '/stuck', 'reload', 'reload']
const ROUTES = ['/soon', '/later', '/long', '/fails', '/dies', '/stuck']

/**
 * The status that a client received; 0: its connection was closed.
 * @param hasBegun Of a client that leaves: whether a handler has its request.
 */
function ask(url: string, hasBegun?: () => boolean): Promise<number> {
  return new Promise((resolve) => {
    const request = http.get(url, { agent: false }, (response) => {
      response.resume().once('close', () => resolve(response.complete ? response.statusCode! : 0))
    })
    request.once('error', () => resolve(0))
    // Not only closed, since the server would still respond.
    if (hasBegun === undefined) return
    const timer = setInterval(() => hasBegun() && request.socket?.resetAndDestroy(), 1)
    request.once('close', () => clearInterval(timer))
  })
}

test('each request has one status, whichever workers die, get stuck and are replaced', async () => {
  const begun = store.getOrCreate<number>('requests that have begun')
  const own = zone.create('killed', { workers: 2, closeMs: WAIT_MS_MAX })
  const server = await serve({ zone: own, app: APP, host: '127.0.0.1', port: 0, quiet: true, core: 'native' })
  const received = new Map<string, number>()
  let leavers = 0
  const some = async (route: string, leaves = false): Promise<void> => {
    const name = `leaver-${(leavers += 1)}`
    const asked = leaves
      ? ask(`${server.url}${route}?${name}`, () => begun.get(name) !== undefined)
      : ask(server.url + route)
    const key = `${route} ${await asked}`
    received.set(key, (received.get(key) ?? 0) + 1)
  }
  for (const fate of FATES) {
    const asked: Promise<void>[] = []
    for (let n = 0; n < 25; n++) {
      asked.push(some('/soon'), some('/later'), some('/later', n % 5 === 0), some('/fails'))
      if (n % 10 === 0) asked.push(some('/long', true))
    }
    asked.push(fate === 'reload' ? own.reload() : some(fate))
    await Promise.all(asked)
  }
  const now = (): Samples => read(metricsText('openmetrics'), true)
  const counted = (samples: Samples, route: string, labels: Readonly<Record<string, string>> = {}): number =>
    sum(samples, 'corespun_http_server_requests_total', { http_route: route, ...labels })
  const active = (samples: Samples): number => sum(samples, 'http_server_active_requests')
  await until(() => active(now()) === 0)
  await server.close({ timeoutMs: WAIT_MS_MAX })
  await own.close()
  const samples = now()
  // A thread that has no CPU for a second is ended wherever it is: one request of it may not be noted.
  let unnoted = (await server.stats()).replacements - begun.get('/stuck')!
  for (const route of ROUTES) {
    const started = begun.get(route) ?? 0
    assert.ok(started > 0, route)
    unnoted -= counted(samples, route) - started
    assert.ok(counted(samples, route) >= started && unnoted >= 0, `${counted(samples, route)} of ${started}`)
    assert.equal(sum(samples, 'http_server_active_requests', { http_route: route }), 0)
    // What a stuck worker had responded before in the same batch may have left, and has died.
    const lost = counted(samples, route, { error_type: 'died' })
    for (const status of ['200', '500']) {
      const clients = received.get(`${route} ${status}`) ?? 0
      const statuses = counted(samples, route, { http_response_status_code: status }) + lost
      assert.ok(
        clients <= statuses,
        `${clients} clients received ${status} of ${route}, ${statuses} are counted`,
      )
    }
  }
  const died = (route: string): number => counted(samples, route, { error_type: 'died' })
  assert.equal(died('/dies') + died('/stuck'), counted(samples, '/dies') + counted(samples, '/stuck'))
  const aborted = counted(samples, '/long', { error_type: 'aborted' })
  assert.equal(aborted + died('/long'), counted(samples, '/long'))
  begun.close()
})
