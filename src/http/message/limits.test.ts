/**
 * Limits as set: each core applies the exact value, up to the largest that may be set.
 *
 * The conformance table tests the response beyond a limit; this file tests where the limit is.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onServer } from '../cores.test.support.ts'
import { LIMIT_RANGES } from './limits.ts'
import { converse } from '../raw.test.support.ts'
import { serve } from '../serve.ts'

const routes = { '/*': (): string => 'fine' }

/** The status of the response to a request with these lines. */
async function status(port: number, target: string, lines: readonly string[]): Promise<number> {
  const head = [`GET ${target} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n')
  const { responses } = await converse(port, [head], { responses: 1 })
  return responses[0]?.status ?? 0
}

for (const [headerBytesMax, headersMax] of [
  [4096, 100],
  [16_384, 128],
  [65_535, 512],
] as const) {
  onServer(`of ${headerBytesMax} bytes, ${headersMax} headers are the most`, async (start) => {
    const { port } = await start({ routes, limits: { headerBytesMax } })
    const lines = (count: number): string[] => Array.from({ length: count - 1 }, (_, at) => `X-${at}: y`)
    assert.equal(await status(port, '/', lines(headersMax)), 200)
    assert.equal(await status(port, '/', lines(headersMax + 1)), 431)
  })
}

for (const headerBytesMax of [256, 16_384, 40_000, LIMIT_RANGES.headerBytesMax.most]) {
  onServer(`headerBytesMax ${headerBytesMax} is exact within a few bytes`, async (start) => {
    const { port } = await start({ routes, limits: { headerBytesMax } })
    // Cores count a few bytes more or less to the head: line ends, the blanks around a value.
    const room = headerBytesMax - 'GET / HTTP/1.1\r\nHost: x\r\nX-A: \r\n\r\n'.length
    const slack = 40
    assert.equal(await status(port, '/', [`X-A: ${'y'.repeat(room - slack)}`]), 200)
    assert.equal(await status(port, '/', [`X-A: ${'y'.repeat(room + slack)}`]), 431)
  })
}

for (const headerBytesMax of [256, 16_384, 65_535]) {
  const targetBytesMax = Math.floor(headerBytesMax / 2)
  onServer(`of ${headerBytesMax} bytes, ${targetBytesMax} are the most of a target`, async (start) => {
    const { port } = await start({ routes, limits: { headerBytesMax } })
    const target = (bytes: number): string => `/${'t'.repeat(bytes - 1)}`
    assert.equal(await status(port, target(targetBytesMax), []), 200)
    assert.equal(await status(port, target(targetBytesMax + 1), []), 414)
  })
}

onServer('bodyBytesMax is exact', async (start) => {
  const { port } = await start({
    routes: { '/': async (r) => r.text() },
    limits: { bodyBytesMax: 5 },
  })
  for (const [bytes, expected] of [
    [5, 200],
    [6, 413],
  ] as const) {
    const post = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n${'b'.repeat(bytes)}`
    assert.equal((await converse(port, [post], { responses: 1 })).responses[0].status, expected)
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunked = `${head}${bytes}\r\n${'b'.repeat(bytes)}\r\n0\r\n\r\n`
    assert.equal((await converse(port, [chunked], { responses: 1 })).responses[0].status, expected)
  }
})

onServer('what comes behind the last request of a connection is not carried out', async (start) => {
  const ran: string[] = []
  const { port } = await start({
    routes: { '/:name': ({ url, params }) => (ran.push(url), params.name) },
  })
  const named = (name: string, ...lines: string[]): string =>
    [`GET /${name} HTTP/1.${lines.length > 0 ? 0 : 1}`, 'Host: x', ...lines, '', ''].join('\r\n')
  const behind = named('behind')
  for (const pipeline of [
    named('old', 'Connection: keep-alive, close') + behind,
    named('old', 'Connection: close', 'Connection: keep-alive') + behind,
  ]) {
    const { responses, closed } = await converse(port, [pipeline], { responses: 5 })
    assert.deepEqual([responses.length, closed], [1, true])
  }
  assert.deepEqual(ran, ['http://x/old', 'http://x/old'])
})

test('a limit beyond what it may be is an error at the start that names it, on every core', async () => {
  for (const [name, { least, most }] of Object.entries(LIMIT_RANGES)) {
    const wrong = [least - 1, most + 1, least + 0.5, Number.NaN, Infinity, '1', null, true, {}]
    for (const value of wrong) {
      await assert.rejects(serve({ routes, port: 0, limits: { [name]: value } }), {
        code: 'HTTP_ARGUMENT',
        message: new RegExp(
          `^serve\\(\\): limits\\.${name} must be an integer from ${least} to ${most}; received `,
        ),
      })
    }
  }
})
