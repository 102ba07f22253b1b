/**
 * The route of the dashboard without a browser: who may change something.
 * What else is refused.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp, use } from '../../http/index.ts'
import type { Snapshot } from '../figures/snapshot.ts'
import type { ObservedRuns } from '../figures/runs.ts'
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
const at = (ms: number): Date => new Date(ms)
const step = { key: 'a#1', status: 'done', startedAt: at(5), at: at(9), dueAt: undefined, failures: 0 }
const late = { ...step, key: 'b#1', status: 'retrying', startedAt: undefined, dueAt: at(70), failures: 1 }
const running = [
  { key: 'b#1', startedAt: at(11) },
  { key: 'c#1', startedAt: at(12) },
]
const infos = ['one', 'two'].map((key, index) => {
  return { key, status: 'running', startedAt: at(index), endedAt: index === 0 ? at(20) : undefined }
})
const runs = {
  names: ['order'],
  list: () => Promise.resolve({ items: infos, next: 'more' }),
  get: (_: string, key: string) => ({
    state: () =>
      key === 'lost'
        ? Promise.reject(new Error('it was forgotten'))
        : Promise.resolve({
            ...{ ...infos[1], resumedCount: 2, holder: 'box:7', running, error: new Error('no bank') },
            steps: [
              ...Array.from({ length: 250 }, () => ({ ...step, error: undefined })),
              { ...late, error: new Error('busy') },
            ],
          }),
  }),
}
const app = createApp({
  routes: {
    '/runs': dashboard({ runs: [runs as unknown as ObservedRuns] }),
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

test('durable runs are read as far as they are open', async () => {
  const look = async (query: string) => {
    const { runs } = (await (await app.inject(`/runs?snapshot${query}`)).json()) as Snapshot
    return runs!
  }
  const nothing = { names: ['order'], list: [], stepsLeftOut: 0, problems: [] }
  assert.deepEqual(await look(''), nothing)
  assert.deepEqual(await look('&runs=other&run=one'), nothing)
  const { list, problems, name } = await look('&runs=mine&runs=order')
  assert.deepEqual([name, list.map(({ key }) => key), list[1].untilMs], ['order', ['two', 'one'], 20])
  assert.match(problems[0], /^order has more runs/)
  assert.deepEqual((await look('&runs=order&run=lost')).problems, ['it was forgotten'])
  const { run, stepsLeftOut } = await look('&runs=order&run=two')
  const { steps, untilMs, ...facts } = run!
  assert.deepEqual(
    [stepsLeftOut, steps.length, facts],
    [
      52,
      200,
      { key: 'two', status: 'running', startedMs: 1, resumedCount: 2, holder: 'box:7', error: 'no bank' },
    ],
  )
  assert.deepEqual(steps.slice(-3), [
    { key: 'a#1', status: 'done', startedMs: 5, untilMs: 9, failures: 0 },
    { key: 'b#1', status: 'running', startedMs: 9, untilMs, failures: 1, dueMs: 70, error: 'busy' },
    { key: 'c#1', status: 'running', startedMs: 12, untilMs, failures: 0 },
  ])
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

for (const options of [
  { name: '' },
  { fleets: {} },
  { fleets: [null] },
  { control: 1 },
  { runs: [{}] },
  { controls: true },
])
  test(`invalid options are refused: ${JSON.stringify(options)}`, () =>
    assert.throws(() => dashboard(options as never), { code: 'OBSERVE_ARGUMENT' }))
