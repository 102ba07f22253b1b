/**
 * The conformance table on the native core: bytes in, responses out.
 *
 * A strict reader (raw.test.support.ts) also reads every response, which must have a date, and a length or
 * chunks, as the standard requires of a server with a clock.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BODIES } from './core/conformance/bodies.test.support.ts'
import type { Case, Expected, Outcome } from './core/conformance/case.test.support.ts'
import { CONNECTIONS } from './core/conformance/connections.test.support.ts'
import { FIELDS } from './core/conformance/fields.test.support.ts'
import { REQUEST_LINES } from './core/conformance/request-line.test.support.ts'
import { converse, type RawResponse } from './raw.test.support.ts'
import type { HttpServer } from './server.ts'
import { serve } from './serve.ts'

const CASES: readonly Case[] = [
  ...REQUEST_LINES,
  ...FIELDS,
  ...BODIES,
  ...BODIES.flatMap(withBodyLater),
  ...CONNECTIONS,
]

/** What a body does may not depend on whether it comes with its head. */
function withBodyLater(found: Case): Case[] {
  if (typeof found.send !== 'string') return []
  const at = found.send.indexOf('\r\n\r\n') + 4
  if (at === found.send.length) return []
  const send = [found.send.slice(0, at), found.send.slice(at)]
  return [{ ...found, name: `${found.name}, its body later`, send }]
}

function start(): Promise<HttpServer> {
  const streamed = (): Response => new Response(new Blob(['stream']).stream().pipeThrough(ending('ed')))
  return serve({
    quiet: true,
    core: 'native',
    host: '127.0.0.1',
    port: 0,
    limits: { bodyBytesMax: 1_000_000 },
    error: () => undefined,
    routes: {
      '/': { GET: () => 'hello' },
      '/constant': 'constant',
      '/echo': async (request) => request.text(),
      '/ignore': () => 'ignored',
      '/host': (request) => new URL(request.url).host,
      '/header': (request) => JSON.stringify(request.headers.get('x-test')),
      '/cookie': (request) => request.headers.get('cookie') ?? '',
      '/user/:id': (request) => request.params.id,
      '/target/*': (request) => {
        const { pathname, search } = new URL(request.url)
        return `${request.method} ${pathname} ${search}`
      },
      '/slow': () => new Promise<string>((resolve) => setTimeout(() => resolve('slow'), 20)),
      '/stream': streamed,
      '/status/:code': (request) => new Response(null, { status: Number(request.params.code) }),
      '/throws': () => {
        throw new Error('on purpose')
      },
    },
  })
}

/** Appends bytes after a delay, so that a response is streamed. */
function ending(text: string): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    async flush(controller) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      controller.enqueue(new TextEncoder().encode(text))
    },
  })
}

function shown(response: RawResponse, expected: Expected | undefined): Expected {
  return typeof expected === 'object' ? [response.status, response.body] : response.status
}

async function check(port: number, found: Case, expect: Outcome): Promise<void> {
  const pieces = typeof found.send === 'string' ? [found.send] : found.send
  const { responses, closed, rest } = await converse(port, pieces, {
    responses: expect.responses.length + (expect.closes ? 1 : 0),
    methods: found.methods ?? [],
    end: found.ends ?? false,
    waits: expect.responses[0] === 100,
  })
  const seen = responses.map((response, at) => shown(response, expect.responses[at]))
  assert.deepEqual({ responses: seen, closes: closed, rest }, { ...expect, rest: '' })
  for (const { status, headers } of responses.filter(({ status }) => status >= 200)) {
    assert.match(headers.date ?? '', /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
    const length = headers['content-length']
    if (status === 204) assert.equal(length, undefined)
    assert.ok(length === undefined || headers['transfer-encoding'] === undefined)
  }
  if (expect.closes && responses.length > 0 && found.ends !== true)
    assert.equal(responses.at(-1)!.headers.connection, 'close')
}

test('the table has cases enough, each with a name of its own and a clause', () => {
  const names = new Set(CASES.map(({ name }) => name))
  assert.ok(CASES.length >= 200, `${CASES.length} cases`)
  assert.equal(names.size, CASES.length)
  for (const { clause } of CASES) assert.match(clause, /^\d{4} \d/)
})

let server: HttpServer
before(async () => {
  server = await start()
})
after(() => server.close({ timeoutMs: 0 }))
for (const found of CASES)
  test(`RFC ${found.clause}: ${found.name}`, () => check(server.port, found, found.expect))
