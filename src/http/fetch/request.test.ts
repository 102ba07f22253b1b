/**
 * What Node's `Request`, classes that extend it and its `fetch` make of a handler's request: what they make
 * of their own, or, where a private field of Node's makes that impossible, an error that names the remedy.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode, decode } from '../../transport/index.ts'
import { processFrame, readFrame } from '../../transport/internal.ts'
import { Headers as OwnHeaders } from '../index.ts'
import { serve } from '../serve.ts'

const NodeRequest = globalThis.Request
const nodeFetch = globalThis.fetch
const NodeHeaders = globalThis.Headers
/** As a framework has it that was loaded before the server started. */
class Kept extends Request {}
/** Node 20 and 22 keep what a Request is under symbols, which any object can have. */
const HAS_PRIVATE_STATE = Object.getOwnPropertySymbols(new Request('http://x')).length === 0

type Use = (request: Request) => Promise<string>

async function facts(request: Request): Promise<string> {
  const { method, url, headers } = request
  return `${method} ${new URL(url).search} ${headers.get('x-a')} ${await request.text()}`
}

function inherited(request: Request, name: string): unknown {
  return Reflect.get(NodeRequest.prototype, name, request)
}

/** Works with every object that is a request by its methods. */
const ALWAYS: readonly Use[] = [
  (request) => facts(new Request(request.url, request)),
  (request) => facts(new Kept(request.url, request)),
  (request) => facts(new Kept(request.clone())),
  (request) => facts(new Proxy(request, {})),
  (request) => facts(Object.create(request) as Request),
  (request) => facts(new Proxy(request, {}).clone()),
  async (request) => (await nodeFetch(new URL('/upstream?q', request.url), request)).text(),
]

/** Works where the globals are replaced, and on Node 20 and 22. */
const WITH_GLOBALS: readonly Use[] = [
  (request) => facts(new Request(request)),
  (request) => facts(new Request(new Proxy(request, {}))),
  async (request) =>
    (await fetch(new Request(new URL('/upstream?q', request.url), new Request(request)))).text(),
  (request) => {
    for (const name of ['method', 'url', 'bodyUsed'] as const)
      assert.equal(inherited(request, name), request[name])
    assert.equal((inherited(request, 'headers') as Headers).get('x-a'), '1')
    assert.equal(inherited(request, 'isHistoryNavigation'), false)
    return facts(request)
  },
  async (request) => {
    const text = NodeRequest.prototype.text.call(request)
    const { bodyUsed } = request
    const body = await text // rejects where it is refused, since Node 26.12
    assert.equal(bodyUsed, true)
    return `POST ?q 1 ${body}`
  },
]

/** Reads a field that only Node's own objects have from Node 24 on. */
const KEPT: readonly Use[] = [
  (request) => facts(new Kept(request)),
  (request) => facts(new NodeRequest(new Proxy(request, {}))),
]

/** `fetch` replaces the globals, a handler does not. */
async function responded(use: Use, globals: boolean): Promise<string> {
  const handler = async (request: Request) => new Response(await use(request))
  const upstream = (request: Request) => facts(request)
  const server = await serve({
    quiet: true,
    port: 0,
    routes: { '/upstream': upstream, '/p': globals ? { fetch: handler } : handler },
    error: (cause) => new Response(`${(cause as { code?: string }).code}: ${(cause as Error).message}`),
  })
  const init = { method: 'POST', body: 'body', headers: { 'x-a': '1' } }
  try {
    return await (await nodeFetch(`${server.url}/p?q`, init)).text()
  } finally {
    await server.close()
  }
}

for (const globals of [true, false]) {
  const works = [...ALWAYS]
  const refused: Use[] = []
  ;(HAS_PRIVATE_STATE && !globals ? refused : works).push(...WITH_GLOBALS)
  ;(HAS_PRIVATE_STATE ? refused : works).push(...KEPT)

  test(`a handler's request passes for Node's own, globals: ${globals}`, async () => {
    for (const use of works) assert.equal(await responded(use, globals), 'POST ?q 1 body', String(use))
  })

  test(`what cannot read a handler's request fails with the remedy, globals: ${globals}`, async () => {
    for (const use of refused)
      assert.match(await responded(use, globals), /^HTTP_REQUEST_CLASS: .*request\.clone\(\)/, String(use))
  })
}

test('a request whose body was read has its other fields for Node, and no body', async () => {
  const seen = await responded(async (request) => {
    await request.text()
    assert.throws(() => request.clone(), TypeError)
    assert.throws(() => new Request(request), TypeError)
    assert.equal(inherited(request, 'bodyUsed'), true)
    assert.throws(() => new Proxy(request, {}).clone(), TypeError)
    return `${inherited(request, 'method') as string} ${request.bodyUsed}`
  }, true)
  assert.equal(seen, 'POST true')
})

/** Between threads, and through self-contained bytes. */
const SENDS = [
  <Value>(value: Value): Value => {
    const frame = processFrame(value)
    return readFrame(frame, 0, frame.length) as Value
  },
  <Value>(value: Value): Value => decode(encode(value)) as Value,
]

for (const core of ['native', 'node'] as const) {
  test(`headers and forms of a handler travel and arrive as the global classes, core: ${core}`, async () => {
    const entries: [string, string][] = [
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-a', '1'],
    ]
    const use = async (request: Request): Promise<void> => {
      const all = {
        sent: request.headers,
        own: new OwnHeaders(entries),
        node: new NodeHeaders(entries),
        response: new Response('', { headers: entries }).headers,
      }
      const form = await request.formData()
      for (const send of SENDS) {
        const far = send({ ...all, form })
        for (const [name, headers] of Object.entries(all)) {
          const copy = far[name as keyof typeof all]
          assert.equal(copy.constructor, Headers, name)
          assert.deepEqual([...copy], [...headers], name)
        }
        assert.equal(far.form.constructor, FormData)
        const file = far.form.get('file') as File
        assert.deepEqual([far.form.get('text'), file.name, await file.text()], ['ü', 'up.txt', 'body'])
      }
    }
    const server = await serve({
      quiet: true,
      port: 0,
      core,
      fetch: (request) => use(request).then(() => new Response('all arrived')),
      error: (cause) => new Response(String(cause)),
    })
    try {
      const body = new FormData()
      body.append('text', 'ü')
      body.append('file', new Blob(['body']), 'up.txt')
      const response = await nodeFetch(server.url, { method: 'POST', body, headers: { 'x-a': '1' } })
      assert.equal(await response.text(), 'all arrived')
    } finally {
      await server.close()
    }
    for (const send of SENDS) {
      const far = send(new OwnHeaders(entries))
      assert.equal(far.constructor, NodeHeaders)
      assert.deepEqual([...far], entries)
    }
  })
}

test("the getters of Node's Request come back when the last server stops", async () => {
  const before = Object.getOwnPropertyDescriptors(NodeRequest.prototype)
  const server = await serve({ quiet: true, port: 0, fetch: () => new Response('') })
  assert.equal(Request.prototype, NodeRequest.prototype)
  class Late extends Request {}
  const late = new Late('http://x/', { method: 'PUT' })
  assert.ok(late instanceof Late && late instanceof NodeRequest && late.method === 'PUT')
  assert.throws(() => new Request(...([] as unknown as [string])), TypeError)
  await server.close()
  for (const [name, { get, value }] of Object.entries(before)) {
    const now = Object.getOwnPropertyDescriptor(NodeRequest.prototype, name)
    assert.ok(now?.get === get && now?.value === value, name)
  }
})
