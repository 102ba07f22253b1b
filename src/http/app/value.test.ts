/**
 * What handlers return: every kind of value is sent as what it is, or refused by name; never as `200 {}`.
 *
 * On both cores, since values belong to the app.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { use } from './middleware.ts'
import { onCores, type Start } from '../cores.test.support.ts'
import { HttpError } from '../errors.ts'
import { createApp } from '../server.ts'

/** A Response as another package makes it: no relation to Node's class, a body with a reader alone. */
class OtherResponse {
  readonly #text: string
  readonly status: number
  readonly statusText = ''
  readonly bodyUsed = false
  readonly options = { kept: 'by JSON' }
  readonly headers: Headers
  readonly url: string
  constructor(text: string, status: number, headers: [string, string][], url = '') {
    this.#text = text
    this.status = status
    this.headers = new Headers(headers)
    this.url = url
  }
  get body(): object {
    let left = [this.#text]
    const read = async (): Promise<object> => {
      const value = left.map((text) => Buffer.from(text))[0]
      left = []
      return { done: value === undefined, value }
    }
    return { getReader: () => ({ read, cancel: async () => {} }) }
  }
}

const other = (): OtherResponse =>
  new OtherResponse('from elsewhere', 201, [
    ['content-type', 'text/x'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
  ])

function form(): FormData {
  const data = new FormData()
  data.set('field', 'value')
  return data
}

class Empty {}

/** Starts the handlers as they are and, below `/wrapped`, with a middleware around them. */
async function serving(start: Start, handlers: Record<string, () => unknown>): Promise<string[]> {
  const routes = Object.fromEntries(
    Object.entries(handlers).map(([name, run]) => [`/${name}`, () => run() as never]),
  )
  const wrapped = Object.fromEntries(
    Object.entries(handlers).map(([name, run]) => [`/wrapped/${name}`, () => run() as never]),
  )
  const server = await start({ routes: { ...routes, ...use(wrapped, (_, next) => next()) } })
  return [server.url, `${server.url}/wrapped`]
}

onCores('a Response of another maker is sent as a response', async (start) => {
  for (const url of await serving(start, { other })) {
    const response = await fetch(`${url}/other`)
    const { status, headers } = response
    assert.deepEqual(
      [status, headers.get('content-type'), await response.text()],
      [201, 'text/x', 'from elsewhere'],
    )
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2'])
  }
})

/** As `fetch` of another package returns it: a decoded body, with the headers of the encoded one. */
function fetched(): OtherResponse {
  const encoded: [string, string][] = [
    ['content-encoding', 'gzip'],
    ['content-length', '34'],
  ]
  return new OtherResponse('decoded', 200, encoded, 'http://upstream/')
}

/** Headers as node-fetch has them, where only `raw` separates cookies. */
class RawHeaders extends Map<string, string> {
  raw(): object {
    return { 'set-cookie': this.get('set-cookie')?.split(', ') }
  }
}

function ofNodeFetch(): object {
  const headers = new RawHeaders([['set-cookie', 'a=1, b=2']])
  return Object.assign(new Empty(), { status: 200, headers, body: 'text' })
}

onCores('a Response from the fetch of another package has headers that fit its body', async (start) => {
  for (const url of await serving(start, { fetched, ofNodeFetch })) {
    const response = await fetch(`${url}/fetched`)
    assert.deepEqual([response.headers.get('content-encoding'), await response.text()], [null, 'decoded'])
    const { headers } = await fetch(`${url}/ofNodeFetch`)
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2'])
  }
})

onCores('bodies of the fetch standard are sent with their content type', async (start) => {
  const handlers = {
    blob: () => new Blob(['{}'], { type: 'text/x-blob' }),
    params: () => new URLSearchParams({ a: 'b c' }),
    form,
    view: () => new DataView(new Uint8Array([1, 2, 3]).buffer, 1),
  }
  for (const url of await serving(start, handlers)) {
    const ask = async (name: string): Promise<unknown[]> => {
      const response = await fetch(`${url}/${name}`)
      return [response.status, response.headers.get('content-type'), await response.text()]
    }
    assert.deepEqual(await ask('blob'), [200, 'text/x-blob', '{}'])
    assert.deepEqual(await ask('params'), [200, 'application/x-www-form-urlencoded;charset=UTF-8', 'a=b+c'])
    assert.deepEqual(await ask('view'), [200, 'application/octet-stream', '\x02\x03'])
    const response = await fetch(`${url}/form`)
    assert.equal((await response.formData()).get('field'), 'value')
  }
})

onCores('a returned error has the response of a thrown one', async (start) => {
  for (const url of await serving(start, { error: () => new Error('secret') })) {
    const response = await fetch(`${url}/error`)
    assert.deepEqual([response.status, await response.text()], [500, 'Internal Server Error'])
  }
})

onCores('strings of generators and streams are sent as UTF-8', async (start) => {
  const handlers = {
    generator: function* () {
      yield 'a'
      yield 'ö'
    },
    stream: () =>
      new Response(
        new ReadableStream<string>({
          start(out) {
            out.enqueue('a')
            out.enqueue('ö')
            out.close()
          },
        }) as unknown as ReadableStream<Uint8Array>,
      ),
  }
  for (const url of await serving(start, handlers)) {
    for (const name of Object.keys(handlers))
      assert.equal(await (await fetch(`${url}/${name}`)).text(), 'aö', name)
  }
})

/** The message of the error that a handler's value leads to. */
async function refusal(value: unknown): Promise<string> {
  const seen: unknown[] = []
  const app = createApp({ routes: { '/x': () => value as never }, error: (cause) => void seen.push(cause) })
  assert.equal((await app.inject('/x')).status, 500)
  assert.ok(seen[0] instanceof HttpError)
  assert.equal(seen[0].code, 'HTTP_RESPONSE')
  return seen[0].message
}

test('an object without JSON-serializable properties is refused with its class and its route', async () => {
  for (const value of [new Map([['a', 1]]), new Set([1]), new Empty(), new WeakMap()])
    assert.match(
      await refusal(value),
      new RegExp(
        `^the handler of /x must return .*${value.constructor.name}, which has no enumerable properties to `,
      ),
    )
})

test('what JSON cannot represent is named with its route and its path', async () => {
  const circle: Record<string, unknown> = {}
  circle['self'] = { list: [circle] }
  assert.match(
    await refusal({ items: [{ id: 1 }, { id: 2n }] }),
    /^the handler of \/x must return .* a BigInt at items\[1\]\.id$/,
  )
  assert.match(
    await refusal(circle),
    /^the handler of \/x must return .* a circular reference at self\.list\[0\]$/,
  )
})

test('a table with methods in lower case is refused with the right name', () => {
  const routes = { '/x': { get: () => 'x' } } as never
  assert.throws(() => createApp({ routes }), {
    code: 'HTTP_ARGUMENT',
    message: /method names are upper case: GET instead of get/,
  })
})

onCores(
  'a response of fetch whose body Node has decoded goes out without the headers of the encoded one',
  async (start) => {
    const upstream = createServer((_, response) => {
      const body = gzipSync('x'.repeat(5000))
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': body.length, 'x-kept': 'yes' })
      response.end(body)
    }).listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    const { port } = upstream.address() as AddressInfo
    const server = await start({ fetch: () => fetch(`http://127.0.0.1:${port}/`) })
    const response = await fetch(server.url)
    assert.deepEqual(
      [
        response.headers.get('content-encoding'),
        response.headers.get('x-kept'),
        (await response.text()).length,
      ],
      [null, 'yes', 5000],
    )
    upstream.close()
    upstream.closeAllConnections()
  },
)

onCores('`error` sees the status of a fault of the client', async (start) => {
  const error = (cause: unknown): Response => {
    const { status = 500, message } = cause as Error & { status?: number }
    return new Response(message, { status })
  }
  const routes = {
    '/json': async (request: Request) => (await request.json()) as object,
    '/text': async (request: Request) => await request.text(),
    '/bug': () => {
      throw new TypeError('a bug')
    },
  }
  const server = await start({ limits: { bodyBytesMax: 10 }, routes, error })
  const long = (): ReadableStream<Uint8Array> => new Blob(['x'.repeat(100)]).stream()
  const post = async (path: string, body: string | ReadableStream<Uint8Array>): Promise<number> => {
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    return (await fetch(server.url + path, init)).status
  }
  assert.deepEqual(
    [await post('/json', '{'), await post('/text', long()), await post('/bug', '')],
    [400, 413, 500],
  )
  assert.equal(server.stats().errors, 1)
})

test('an error that nobody handles is printed with method, path and route', async (t) => {
  const printed = t.mock.method(console, 'error', () => {})
  const app = createApp({
    routes: {
      '/user/:id': () => {
        throw new Error('a bug')
      },
    },
  })
  await app.inject('/user/7?x=1')
  assert.match(String(printed.mock.calls[0]?.arguments[0]), /: GET \/user\/7 failed \(route \/user\/:id\):$/)
})
