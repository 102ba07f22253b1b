/**
 * What a client sends is counted once: as a request, with its status, or as a refusal of the server. The
 * oracle is how much was sent; and the limit of series holds, whatever a program calls its routes.
 */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { meters } from '../base/index.ts'
import { until } from '../base/wait.test.support.ts'
import { createApp, serve } from '../http/index.ts'
import { metrics, metricsText } from './index.ts'
import { isAsker } from './questions.ts'
import { type Samples, read, sum } from './reading.test.support.ts'

metrics()

const now = (): Samples => read(metricsText(), false)
const begin = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nhost: a\r\n`

/** What a client sends, and the statuses that it may receive. */
const SENT: readonly (readonly [what: string, bytes: string, statuses: readonly number[]])[] = [
  ['a request', `${begin('GET', '/')}connection: close\r\n\r\n`, [200]],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', [400]],
  ['no HTTP', 'NONSENSE\r\n\r\n', [400]],
  ['a long head', `${begin('GET', '/')}a: ${'x'.repeat(100_000)}\r\n\r\n`, [431]],
  ['a body that states its length', `${begin('POST', '/body')}content-length: 100000\r\n\r\n`, [413]],
  [
    'a body that does not',
    `${begin('POST', '/body')}transfer-encoding: chunked\r\n\r\n186A0\r\n${'x'.repeat(100_000)}\r\n0\r\n\r\n`,
    [413],
  ],
  [
    'a body whose chunks are malformed',
    `${begin('POST', '/body')}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nhello\r\n`,
    [400],
  ],
  [
    'the same for a handler that does not read it',
    `${begin('POST', '/unread')}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nhello\r\n`,
    [200, 400],
  ],
]

for (const core of ['native', 'node'] as const)
  for (const [what, bytes, statuses] of SENT)
    test(`${what} is counted once, on the ${core} core`, async () => {
      const requests = (): number => sum(now(), 'corespun_http_server_requests_total')
      const refused = (): number =>
        sum(now(), 'corespun_http_server_refusals_total', { corespun_refusal: 'request' })
      const [before, refusedBefore] = [requests(), refused()]
      const server = await serve({
        port: 0,
        core,
        quiet: true,
        limits: { bodyBytesMax: 10_000 },
        routes: {
          '/': () => 'hello',
          '/body': { POST: async (request) => request.text() },
          '/unread': { POST: () => 'hello' },
        },
      })
      const socket = connect(server.port, '127.0.0.1')
      socket.write(bytes)
      const received = await text(socket).catch(() => '')
      await server.close({ timeoutMs: 0 })
      await until(() => requests() + refused() > before + refusedBefore)
      // A connection that is closed with bytes unread may be reset before its response is read.
      const [, status] = received.split(' ')
      assert.ok(status === undefined || statuses.includes(Number(status)), status)
      assert.deepEqual(
        [requests() - before + refused() - refusedBefore],
        [1],
        `${requests() - before} requests`,
      )
    })

test('names that submitters of jobs choose leave room for other series', async () => {
  const before = now()
  const names = ['', 'a"b\\', 'line\nbreak', '\0', '\u{d800}', 'x'.repeat(1_000_000)]
  const all = [...names, ...Array.from({ length: 6000 }, (_, n) => `${'n'.repeat(100)}${n}`)]
  for (let time = 0; time < 2; time++)
    for (const name of all) meters.ended!('jobsEnded', 'mail', name, 'dead')
  const ended = 'corespun_jobs_ended_total'
  assert.equal(sum(now(), ended) - (sum(before, ended) || 0), 2 * all.length)
  assert.match(metricsText(), /^corespun_jobs_ended_total \d+$/m)
  assert.ok(metricsText().length < 1_000_000)
  const app = createApp({ routes: { '/after/:id': () => 'a' } })
  await app.inject('/after/1')
  assert.match(metricsText(), /^corespun_http_server_requests_total\{.*http_route="\/after\/:id".*\} 1$/m)
  read(metricsText('openmetrics'), true)
})

test('what is beyond 4,096 series is counted together, and each series is there once', async () => {
  const refusals = channel('corespun:http:refused')
  const refuse = (reason: string, leftOut = 0): void => refusals.publish({ what: 'request', reason, leftOut })
  refuse('malformed', 3)
  const before = sum(now(), 'corespun_http_server_requests_total')
  const refusedBefore = sum(now(), 'corespun_http_server_refusals_total')
  const paths = Array.from({ length: 2500 }, (_, n) => `/a/${n}/:id`)
  const app = createApp({ routes: Object.fromEntries(paths.map((path) => [path, () => path])) })
  for (const path of paths) assert.equal((await app.inject(path)).status, 200)
  for (let n = 0; n < 100; n++) refuse(`reason-${n}`, 1)
  const samples = now()
  assert.equal(sum(samples, 'corespun_http_server_requests_total') - before, paths.length)
  assert.equal(sum(samples, 'http_server_active_requests'), 0)
  assert.equal(sum(samples, 'corespun_http_server_refusals_total') - refusedBefore, 200)
  read(metricsText('openmetrics'), true)
})

test('a reply of a process reaches nobody but who asks', () => {
  assert.deepEqual(
    ['corespun:questions:0', 'corespun:questions', 'corespun:questions:0x', 'mine', undefined].map(isAsker),
    [true, false, false, false, false],
  )
})
