/**
 * The route of the dashboard without a browser: who may change something.
 * What else is refused.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp, use } from '../../http/index.ts'
import type { Snapshot } from '../figures/snapshot.ts'
import { dashboard } from './dashboard.ts'

const asked: string[] = []
const fleet = {
  overview: () =>
    Promise.resolve({
      hosts: [],
      queues: [{ kind: 'jobs' as const, zone: 'mail', waiting: 0, taken: 0, dead: 1, waitedMs: 0 }],
    }),
  jobs: (zone: string) => ({
    dead: () => Promise.resolve([{ key: 'a', name: 'send', failures: 1, hostsLost: 0, errors: [7, null] }]),
    again: (key: string) => {
      asked.push(`${zone} ${key}`)
      return key === 'broken'
        ? Promise.reject(new Error('the servers are away'))
        : Promise.resolve(key === 'a')
    },
  }),
}
const app = createApp({
  routes: {
    '/open': dashboard({ name: 'orders', fleets: [fleet], control: true }),
    '/view': dashboard({ fleets: [fleet] }),
    '/alone': dashboard({ control: true }),
    ...use({ '/guarded': dashboard() }, () => new Response('who?', { status: 401 })),
  },
})
const own = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
const post = (
  path: string,
  headers: Record<string, string>,
  body: unknown = { action: 'retry', zone: 'mail', key: 'a' },
) =>
  app.inject(path, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) })

test('GET has the page, and the figures by its query', async () => {
  const page = await app.inject('/open')
  assert.match(page.headers.get('content-type')!, /^text\/html/)
  const policy = page.headers.get('content-security-policy')!
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src 'sha256-/)
  const html = await page.text()
  assert.equal(html.match(/<script/g)?.length, 1)
  assert.doesNotMatch(html, /https?:|src=|@import|url\(/)
  for (const query of ['?snapshot', '?a=1&snapshot', '?snapshot=1']) {
    const response = await app.inject(`/open${query}`)
    const { name, fleet, actions } = (await response.json()) as Snapshot
    assert.deepEqual([name, actions], ['orders', ['retry']])
    assert.deepEqual(fleet!.dead, [
      { zone: 'mail', key: 'a', name: 'send', failures: 1, hostsLost: 0, errors: ['7', 'null'] },
    ])
    assert.equal(response.headers.get('cache-control'), 'no-store')
  }
  assert.equal((await app.inject('/open', { method: 'HEAD' })).status, 200)
  assert.equal((await app.inject('/guarded')).status, 401)
})

for (const [what, headers, status] of [
  ['of the page', own, 200],
  ['of the page, without https', { ...own, 'sec-fetch-site': '', origin: 'http://shop.example' }, 200],
  ['of another site', { ...own, 'sec-fetch-site': 'cross-site', origin: 'http://shop.example' }, 403],
  ['of another host of the site', { ...own, 'sec-fetch-site': 'same-site' }, 403],
  ['of a link', { ...own, 'sec-fetch-site': 'none' }, 403],
  ['of another origin, without https', { ...own, 'sec-fetch-site': '', origin: 'http://evil.example' }, 403],
  ['of a document without an origin', { ...own, 'sec-fetch-site': '', origin: 'null' }, 403],
  ['of nobody', { ...own, 'sec-fetch-site': '' }, 403],
  ['of a form', { ...own, 'content-type': 'text/plain' }, 400],
] as const)
  test(`a request ${what}: ${status}`, async () => {
    asked.length = 0
    const { 'sec-fetch-site': site, ...others } = headers
    const sent = { ...others, host: 'shop.example', ...(site === '' ? {} : { 'sec-fetch-site': site }) }
    assert.equal((await post('/open', sent)).status, status)
    assert.deepEqual(asked, status === 200 ? ['mail a'] : [])
  })

test('what was done, and what went wrong', async () => {
  const answer = async (body: unknown): Promise<unknown> => {
    const response = await post('/open', own, body)
    return [response.status, await response.json()]
  }
  assert.deepEqual(await answer({ action: 'retry', zone: 'mail', key: 'a' }), [200, { done: true }])
  assert.deepEqual(await answer({ action: 'retry', zone: 'mail', key: 'b' }), [200, { done: false }])
  const away = { error: 'the servers are away' }
  assert.deepEqual(await answer({ action: 'retry', zone: 'mail', key: 'broken' }), [502, away])
  for (const body of ['', '[', 'null', [], { action: 'drain' }, { action: 'retry', zone: 1, key: 'a' }])
    assert.equal((await post('/open', own, body)).status, 400)
})

test('without permission nothing can be changed', async () => {
  asked.length = 0
  for (const path of ['/view', '/alone']) assert.equal((await post(path, own)).status, 403)
  for (const method of ['PUT', 'DELETE', 'OPTIONS'])
    assert.equal((await app.inject('/open', { method })).status, 405)
  assert.deepEqual(asked, [])
})

for (const options of [{ name: '' }, { fleets: {} }, { fleets: [null] }, { control: 1 }, { controls: true }])
  test(`invalid options are refused: ${JSON.stringify(options)}`, () =>
    assert.throws(() => dashboard(options as never), { code: 'OBSERVE_ARGUMENT' }))
