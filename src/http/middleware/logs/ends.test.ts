/**
 * The access log at the end of responses, and what is measured until then: each request has one record,
 * whichever way its response ends.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../../base/wait.test.support.ts'
import { zone } from '../../../zone/index.ts'
import { chunks } from '../../app/events.ts'
import { StatusError } from '../../app/status-error.ts'
import { onCores } from '../../cores.test.support.ts'
import { native } from '../../fetch/native.ts'
import { CorespunResponse as Response } from '../../fetch/response.ts'
import { createApp } from '../../server.ts'
import { files } from '../files.ts'
import { type Middleware, use } from '../../app/middleware.ts'
import { type AccessRecord, accessLog } from './access-log.ts'
import { serverTiming } from './server-timing.ts'

const { Response: NativeResponse } = native()

const folder = mkdtempSync(join(tmpdir(), 'corespun-ends-'))
writeFileSync(join(folder, 'a.txt'), 'a file')
after(() => rmSync(folder, { recursive: true }))

/** What `serverTiming` sends. */
const PARTS = ['cpu', 'queue', 'hop', 'loop', 'gc', 'total'].map((name) => `${name};dur=[\\d.]+`).join(', ')

const shown = ({ path, status, bytes, aborted }: AccessRecord): string =>
  `${path} ${status} ${bytes}${aborted ? ' aborted' : ''}`

/** A log that keeps what it gets. */
function kept(): { log: Middleware; records: AccessRecord[] } {
  const records: AccessRecord[] = []
  return { log: accessLog({ log: (record) => void records.push(record) }), records }
}

async function get(url: string): Promise<http.IncomingMessage> {
  const request = http.request(url, { agent: false }).end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return response
}

onCores('a record has the bytes of the body, whatever that is', async (start) => {
  const { log, records } = kept()
  const table: [path: string, value: () => unknown, bytes: number][] = [
    ['/text', () => 'tést', 5],
    ['/json', () => ({ a: 1 }), 7],
    ['/bytes', () => new Uint8Array(9), 9],
    ['/none', () => new Response(null, { status: 204 }), 0],
    ['/nothing', () => new NativeResponse(null), 0],
    ['/blob', () => new Blob(['four']), 4],
    ['/own', () => new NativeResponse('12345'), 5],
    ['/stream', () => new Blob(['12', '345']).stream(), 5],
    ['/chunks', () => chunks(['1', '22', '333']), 6],
  ]
  const routes = Object.fromEntries(table.map(([path, value]) => [path, { GET: value as () => object }]))
  const { url } = await start({ routes: use({ ...routes, '/files/*': files(folder) }, log) })
  const expected: string[] = []
  for (const [path, , bytes] of [...table, ['/files/a.txt', undefined, 6] as const]) {
    const response = await fetch(url + path)
    assert.equal((await response.arrayBuffer()).byteLength, bytes, path)
    expected.push(`${path} ${path === '/none' ? 204 : 200} ${bytes}`)
    await (await fetch(url + path, { method: 'HEAD' })).text()
    expected.push(`${path} ${path === '/none' ? 204 : 200} 0`)
  }
  assert.deepEqual(records.map(shown), expected)
  assert.ok(records.every(({ cpuMs, traceId }) => cpuMs === undefined && traceId === undefined))
})

onCores(
  'a part of a file, one that the client has, and what is refused, have their own bytes',
  async (start) => {
    const { log, records } = kept()
    const routes = { '/files/*': files(folder), '/text': { GET: () => 'text' } }
    const { url } = await start({ routes: use(routes, log) })
    const path = '/files/a.txt'
    const whole = await fetch(url + path)
    await whole.text()
    const etag = whole.headers.get('etag') ?? assert.fail('the file has no tag')
    const table: [method: string, path: string, headers: Record<string, string>, shown: string][] = [
      ['GET', path, { range: 'bytes=2-4' }, '206 3'],
      ['GET', path, { range: 'bytes=-1' }, '206 1'],
      ['GET', path, { range: 'bytes=99-' }, '416'],
      ['HEAD', path, { range: 'bytes=2-4' }, '200 0'],
      ['GET', path, { 'if-none-match': etag }, '304 0'],
      ['HEAD', path, { 'if-none-match': etag }, '304 0'],
      ['GET', '/files/missing', {}, '404'],
      ['HEAD', '/files/missing', {}, '404 0'],
      ['POST', path, {}, '405'],
      ['POST', '/text', {}, '405'],
      ['OPTIONS', '/text', {}, '204 0'],
      ['GET', '/nowhere', {}, '404'],
      ['HEAD', '/nowhere', {}, '404 0'],
    ]
    records.splice(0)
    const expected: string[] = []
    for (const [method, path, headers, shown] of table) {
      const request = http.request(url + path, { method, headers, agent: false }).end()
      const [response] = (await once(request, 'response')) as [http.IncomingMessage]
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      await once(response, 'end')
      // Of a text that an error has, those that have arrived.
      expected.push(`${path} ${shown.includes(' ') ? shown : `${shown} ${bytes}`}`)
      assert.ok(`${response.statusCode} ${bytes}`.startsWith(shown), `${method} ${path}: ${bytes}`)
    }
    await until(() => records.length === table.length)
    assert.deepEqual(records.map(shown), expected)
  },
)

onCores('a stream is recorded once, when it has ended', async (start) => {
  const { log, records } = kept()
  let go: () => void = () => {}
  const gate = new Promise<void>((resolve) => (go = resolve))
  async function* source(): AsyncGenerator<string> {
    yield 'begun'
    await gate
    yield 'ended'
  }
  const { url } = await start({ routes: use({ '/': () => chunks(source()) }, log) })
  const response = await get(url)
  await once(response, 'readable')
  assert.deepEqual(records, [])
  go()
  response.resume()
  await once(response, 'end')
  assert.deepEqual(records.map(shown), ['/ 200 10'])
})

onCores('a response that does not reach its end is recorded as aborted, once', async (start) => {
  const { log, records } = kept()
  async function* endless(): AsyncGenerator<string> {
    for (;;) {
      yield 'more'
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  let fail: () => void = () => {}
  const failure = new Promise<void>((resolve) => (fail = resolve))
  async function* failing(hasBegun: boolean): AsyncGenerator<string> {
    if (hasBegun) yield 'part'
    if (hasBegun) await failure
    throw new StatusError(409, 'on purpose')
  }
  const routes = {
    '/endless': () => chunks(endless()),
    '/fails/late': () => chunks(failing(true)),
    '/fails/early': () => chunks(failing(false)),
    '/wrong': () => chunks([1 as unknown as string]),
  }
  const { url } = await start({ routes: use(routes, log), error: () => undefined })
  const response = await get(`${url}/endless`)
  await once(response, 'readable')
  response.destroy()
  await until(() => records.length === 1)
  assert.match(records.map(shown)[0], /^\/endless 200 \d+ aborted$/)
  const late = await fetch(`${url}/fails/late`)
  fail()
  await assert.rejects(late.text())
  assert.equal((await fetch(`${url}/fails/early`)).status, 409)
  assert.equal((await fetch(`${url}/wrong`)).status, 500)
  await until(() => records.length >= 4)
  assert.deepEqual(records.slice(1).map(shown), [
    '/fails/late 200 4 aborted',
    '/fails/early 409 52',
    '/wrong 500 21',
  ])
})

onCores('a client that leaves before the first chunk of a stream is 499', async (start) => {
  const { log, records } = kept()
  let isAsked = false
  const silent = (): Response =>
    new Response(
      new ReadableStream({
        pull: () => {
          isAsked = true
          return new Promise(() => {})
        },
      }),
    )
  const { url } = await start({ routes: use({ '/': silent }, log) })
  const request = http.get(url, { agent: false }).on('error', () => {})
  await until(() => isAsked)
  request.destroy()
  await until(() => records.length === 1)
  assert.deepEqual(records.map(shown), ['/ 499 0 aborted'])
})

onCores('a request whose handler never settles is recorded when its connection closes', async (start) => {
  const { log, records } = kept()
  let open = 0
  const silent = (): Promise<never> => {
    open += 1
    return new Promise(() => {})
  }
  const server = await start({ routes: use({ '/': silent, '/closed': silent }, log) })
  const request = http.get(server.url, { agent: false }).on('error', () => {})
  await until(() => open === 1)
  request.socket!.resetAndDestroy() // a close alone may be a half-close, which still gets its response
  await until(() => records.length === 1)
  http.get(`${server.url}/closed`, { agent: false }).on('error', () => {})
  await until(() => open === 2)
  await server.close({ timeoutMs: 0 })
  await until(() => records.length === 2)
  assert.deepEqual(records.map(shown), ['/ 499 0 aborted', '/closed 499 0 aborted'])
})

onCores('a handler that settles behind its client has one record', async (start) => {
  const { log, records } = kept()
  const waiting: (() => void)[] = []
  const late = (): Promise<string> => new Promise((resolve) => waiting.push(() => resolve('late')))
  const failing = (): Promise<string> =>
    new Promise((_, reject) => waiting.push(() => reject(new Error('late'))))
  const { url } = await start({
    routes: use({ '/late': late, '/failing': failing, '/next': () => 'next' }, log),
  })
  for (const path of ['/late', '/failing']) {
    const request = http.get(url + path, { agent: false }).on('error', () => {})
    await until(() => waiting.length === 1)
    const { length } = records
    request.socket!.resetAndDestroy()
    await until(() => records.length > length)
    waiting.pop()!()
    await (await fetch(`${url}/next`)).text()
  }
  const next = '/next 200 4'
  assert.deepEqual(records.map(shown), ['/late 499 0 aborted', next, '/failing 499 0 aborted', next])
})

test('a body that an outer middleware drops is recorded as aborted', async () => {
  const { log, records } = kept()
  const replace: Middleware = async (_, next) => {
    await (await next()).body?.cancel()
    return 'instead'
  }
  const app = createApp({ routes: use({ '/': () => chunks(['1', '2']) }, replace, log) })
  assert.equal(await (await app.inject('/')).text(), 'instead')
  assert.deepEqual(records.map(shown), ['/ 200 0 aborted'])
})

test('a record has the trace of its request', async () => {
  const { log, records } = kept()
  const app = createApp({ routes: use({ '/': () => 'ok' }, log) })
  const id = '0af7651916cd43dd8448eb211c80319c'
  for (const traceparent of [`00-${id}-b7ad6b7169203331-01`, '00-malformed'])
    await app.inject('/', { headers: { traceparent } })
  assert.deepEqual(
    records.map(({ traceId }) => traceId),
    [id, undefined],
  )
})

onCores('CPU time includes what tasks have used, in the record that of a stream too', async (start) => {
  const cpu = zone.create('ends', { workers: 1 })
  try {
    const own = async (): Promise<number> => {
      const { currentTask } = await import('../../../zone/index.ts')
      for (let count = 0; count < 1e5; count += 1) Math.hypot(count, count)
      return currentTask()?.cpuMs ?? Number.NaN
    }
    let ofTasks = 0
    async function* source(): AsyncGenerator<string> {
      for (let count = 0; count < 3; count += 1) {
        ofTasks += await cpu.run(own)
        yield `${ofTasks}`
      }
    }
    const records: AccessRecord[] = []
    const log = accessLog({ cpu: true, log: (record) => void records.push(record) })
    let ofHandler = 0
    const handler = async (): Promise<globalThis.Response> => {
      ofTasks = ofHandler = await cpu.run(own)
      return chunks(source())
    }
    const { url } = await start({ routes: use({ '/': handler }, log, serverTiming()) })
    for (let count = 1; count <= 2; count += 1) {
      const response = await fetch(url)
      await response.text()
      const timing = /^cpu;dur=([\d.]+), queue;dur=([\d.]+), hop;dur=([\d.]+), .*, total;dur=([\d.]+)$/.exec(
        response.headers.get('server-timing') ?? '',
      )
      const [queueMs, hopMs, totalMs] = timing!.slice(2).map(Number)
      // One task at a time: its waits are parts of the whole.
      assert.ok(hopMs > 0 && queueMs + hopMs <= totalMs, `${timing?.[0]}`)
      await until(() => records.length === count)
      const { cpuMs = Number.NaN, ms } = records[count - 1]
      // Three digits.
      assert.ok(
        Number(timing?.[1]) >= ofHandler - 0.001 && Number(timing?.[1]) <= cpuMs + 0.001,
        `${timing?.[0]}`,
      )
      assert.ok(cpuMs >= ofTasks - 0.001, `${cpuMs} of ${ofTasks}`)
      assert.ok(totalMs <= ms)
    }
  } finally {
    await cpu.close()
  }
})

test('Server-Timing is in responses to errors and without a route, beside that of a handler', async () => {
  const own = (): Response => new Response('own', { headers: { 'server-timing': 'db;dur=1' } })
  const broken = (): never => {
    throw new Error('on purpose')
  }
  const app = createApp({
    routes: use({ '/own': own, '/broken': broken, '/refused': () => new StatusError(403) }, serverTiming()),
    error: () => undefined,
  })
  for (const [path, status] of [
    ['/own', 200],
    ['/broken', 500],
    ['/refused', 403],
    ['/missing', 404],
  ] as const) {
    const response = await app.inject(path)
    assert.equal(response.status, status, path)
    const pattern = path === '/own' ? new RegExp(`^db;dur=1, ${PARTS}$`) : new RegExp(`^${PARTS}$`)
    assert.match(response.headers.get('server-timing') ?? '', pattern, path)
  }
})

test('what a task waits for a worker is the queue of its request, and what it computes is not', async () => {
  await using cpu = zone.create('timed', { workers: 1 })
  const app = createApp({
    routes: use(
      { '/': async () => String(await Promise.all([cpu.run(computes, 200), cpu.run(computes, 200)])) },
      serverTiming(),
    ),
  })
  await cpu.run(computes, 0)
  const { headers } = await app.inject('/')
  const parts = headers.get('server-timing')!.split(', ')
  const of = (name: string): number =>
    Number(parts.find((part) => part.startsWith(`${name};`))?.split('=')[1])
  assert.ok(of('queue') >= 190, `${parts}`)
  assert.ok(of('queue') + of('hop') <= of('total'), `${parts}`)
  assert.ok(of('loop') < of('total') && of('gc') <= of('loop'), `${parts}`)
})

function computes(ms: number): number {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
  return ms
}
