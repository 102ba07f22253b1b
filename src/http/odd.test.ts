/**
 * Incorrect handlers: whatever they return, throw or do half-way, the client gets a response or its
 * connection is cut, the next client is served, nothing is left open, and nothing reaches the process.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { onCores, onServer } from './cores.test.support.ts'
import { connect, converse } from './raw.test.support.ts'
import { serve } from './serve.ts'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A stream of pieces that then fails. */
function failing(pieces: number, error: unknown): ReadableStream<Uint8Array> {
  let left = pieces
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      await pause(2)
      if ((left -= 1) >= 0) controller.enqueue(new Uint8Array(1000))
      else controller.error(error)
    },
  })
}

const trap = {
  get: (): never => {
    throw new Error('trapped')
  },
  getPrototypeOf: (): never => {
    throw new Error('trapped')
  },
}

const shared = new Response('given twice')
const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic

const thrower = (thrown: unknown) => (): never => {
  throw thrown
}
const rejecter = (reason: unknown) => (): Promise<never> => Promise.reject(reason)
const given = (value: unknown) => (): never => value as never

/** Handlers whose response is 500. */
const FAILING: Readonly<Record<string, () => unknown>> = {
  undefined: given(undefined),
  'a function': given(() => 1),
  'a symbol': given(Symbol('x')),
  'a bigint': given(10n),
  'a cycle': given(cyclic),
  'toJSON returns nothing': given({ toJSON: () => undefined }),
  'toJSON throws': given({ toJSON: thrower(7) }),
  'a proxy that traps': given(new Proxy({}, trap)),
  'then throws': given({ then: thrower(new Error('then')) }),
  'then rejects with nothing': given({ then: (_: unknown, no: (why: unknown) => void) => no(undefined) }),
  'Response.error()': () => Response.error(),
  'a response that was read': async () => {
    const response = new Response('read')
    await response.text()
    return response
  },
  'a locked stream': () => {
    const stream = failing(1, undefined)
    stream.getReader()
    return stream
  },
  'a stream of numbers': () => new Response(new ReadableStream({ pull: (out) => out.enqueue(7 as never) })),
  'a stream that fails at once': () => new Response(failing(0, new Error('at once'))),
  'throws undefined': thrower(undefined),
  'throws null': thrower(null),
  'throws a number': thrower(7),
  'throws a symbol': thrower(Symbol('thrown')),
  'throws a function': thrower(() => 1),
  'throws without a prototype': thrower(Object.create(null)),
  'throws a proxy that traps': thrower(new Proxy({}, trap)),
  'throws a frozen error': thrower(Object.freeze(new Error('frozen'))),
  'overflows the stack': function overflow(): unknown {
    return overflow()
  },
  'rejects with nothing': rejecter(undefined),
  'rejects with a proxy that traps': rejecter(new Proxy({}, trap)),
}

/** Handlers whose response is cut. */
const CUT: Readonly<Record<string, () => Response>> = {
  'a stream that fails half-way': () => new Response(failing(2, new Error('half-way'))),
  'a stream that fails with nothing': () => new Response(failing(2, undefined)),
  'fewer bytes than declared': () =>
    new Response(failing(1, undefined), { headers: { 'content-length': '5000' } }),
  'more bytes than declared': () =>
    new Response(failing(3, undefined), { headers: { 'content-length': '1500' } }),
}

const HANDLERS: Readonly<Record<string, unknown>> = {
  none: () => undefined,
  throws: thrower(new Error('of error')),
  rejects: rejecter(null),
  'returns no response': given(Symbol('bad')),
}

for (const [what, error] of Object.entries(HANDLERS)) {
  onCores(`odd responses and errors; the error handler: ${what}`, async (start, _, t) => {
    t.mock.method(console, 'error', () => {})
    const routes = Object.entries({ ...FAILING, ...CUT }).map(([name, run]) => [path(name), run] as const)
    const server = await start({
      routes: { ...Object.fromEntries(routes), '/fine': () => 'fine' },
      error: error as never,
    })
    for (const name of Object.keys(FAILING)) {
      const { status } = await fetch(server.url + path(name))
      assert.equal(status, 500, name)
    }
    for (const name of Object.keys(CUT)) {
      const whole = fetch(server.url + path(name)).then((response) => response.arrayBuffer())
      await assert.rejects(whole, TypeError, name)
    }
    assert.equal(await (await fetch(`${server.url}/fine`)).text(), 'fine')
    const from = performance.now()
    await server.close({ timeoutMs: 60_000 })
    assert.ok(performance.now() - from < 50_000, 'an exchange was left open')
  })
}

function path(name: string): string {
  return `/${name.replaceAll(/[ ()]/g, '-')}`
}

onCores('a response that is given twice fails the second time, its other client not', async (start) => {
  const server = await start({
    routes: {
      '/': () => shared.clone(),
      '/twice': (() => {
        const once = new Response('once')
        return () => once
      })(),
    },
  })
  const ask = async (where: string): Promise<[number, string]> => {
    const response = await fetch(server.url + where)
    return [response.status, await response.text()]
  }
  assert.deepEqual(await ask('/'), [200, 'given twice'])
  assert.deepEqual(await ask('/'), [200, 'given twice'])
  assert.deepEqual(await ask('/twice'), [200, 'once'])
  assert.deepEqual(await ask('/twice'), [500, 'Internal Server Error'])
})

onCores('bytes that were given away are sent as none', async (start) => {
  const detached = (): Uint8Array => {
    const bytes = new Uint8Array(10)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    return bytes
  }
  const server = await start({ routes: { '/': detached, '/later': async () => detached() } })
  for (const where of ['/', '/later']) {
    const response = await fetch(server.url + where)
    assert.deepEqual([response.status, await response.text()], [200, ''])
  }
})

onServer('a cut response is a reset for HTTP/1.0, whose bodies end with the connection', async (start) => {
  const server = await start({ routes: { '/': () => new Response(failing(2, new Error('half-way'))) } })
  const socket = await connect(server.port)
  const errors: string[] = []
  socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code!)).resume()
  socket.write('GET / HTTP/1.0\r\n\r\n')
  await new Promise((closed) => socket.once('close', closed))
  assert.deepEqual(errors, ['ECONNRESET'])
})

onServer('what clients send is never the error of the program', async (start) => {
  const seen: unknown[] = []
  const server = await start({
    routes: { '/': async (request) => ((await request.json()) as object | null) ?? 'null' },
    error: (error) => void seen.push(error),
  })
  for (const body of ['', '{', '\0', '\ufeff{}', 'null', '[1,', '1e999']) {
    const response = await fetch(server.url, { method: 'POST', body })
    assert.ok([200, 400].includes(response.status), `${JSON.stringify(body)}: ${response.status}`)
    await response.arrayBuffer()
  }
  assert.equal(server.stats().errors, 0)
  const { responses } = await converse(server.port, ['GET / HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n'], {
    responses: 1,
  })
  assert.equal(responses[0].status, 400)
})

test('every setting that is wrong is named', async () => {
  const routes = { '/': 'x' }
  const refused: readonly (readonly [unknown, string])[] = [
    [undefined, 'serve()'],
    [null, 'serve(): options'],
    [[], 'serve(): options'],
    ['/', 'serve(): options'],
    [() => 'x', 'serve(): options'],
    [{ routes: null }, 'serve(): routes'],
    [{ routes: [] }, 'serve(): routes'],
    [{ routes: 'x' }, 'serve(): routes'],
    [{ routes: new Map() }, 'serve(): routes'],
    [{ routes, fetch: null }, 'serve(): fetch'],
    [{ routes: { '/': undefined } }, "routes['/']"],
    [{ routes: { '/': { GET: 1n } } }, "routes['/'].GET"],
    [{ routes: { '/': () => 'x' }, error: 'x' }, 'serve(): error'],
    ...[-1, 65_536, 1.5, '80', null, Number.NaN, {}].map(
      (port) => [{ routes, port }, 'serve(): port'] as const,
    ),
    ...[' ', 'a b', '\0', 7, null].map((host) => [{ routes, host }, 'serve(): host'] as const),
    ...['', '\0', 7, null].map((unixPath) => [{ routes, unixPath }, 'serve(): unixPath'] as const),
    [{ routes, unixPath: '/tmp/x', port: 80 }, 'serve(): port'],
    ...[1, 'yes', null].map((reusePort) => [{ routes, reusePort }, 'serve(): reusePort'] as const),
    ...[-1, Number.NaN, Infinity, '1', null].map(
      (closeMs) => [{ routes, closeMs }, 'serve(): closeMs'] as const,
    ),
    ...[null, [], 'x', 7].map((limits) => [{ routes, limits }, 'serve(): limits'] as const),
    ...['', 'bun', null, 7].map((core) => [{ routes, core }, 'serve(): core'] as const),
  ]
  for (const [settings, name] of refused) {
    const found = await serve(settings as never).then(
      (server) => server.close().then(() => 'accepted'),
      (error: { code?: string; facts?: { name: string } }) => `${error.code} ${error.facts?.name}`,
    )
    assert.equal(found, `HTTP_ARGUMENT ${name}`, inspect(settings))
  }
})

onServer('a response that fails while the client reads nothing does not end the process', async (start) => {
  const server = await start({
    routes: {
      '/long': () => {
        let pulls = 0
        const stream = new ReadableStream({
          async pull(controller) {
            if ((pulls += 1) === 1) return controller.enqueue(new Uint8Array(20_000_000))
            await pause(20)
            throw new Error('the second pull')
          },
        })
        return new Response(stream, { headers: { 'content-length': '30000000' } })
      },
      '/': () => 'ok',
    },
  })
  const socket = await connect(server.port)
  socket.pause().write('GET /long HTTP/1.1\r\nHost: x\r\n\r\n')
  await pause(150)
  socket.destroy()
  assert.equal(await (await fetch(server.url)).text(), 'ok')
})

onServer('headers that the native core has no room for are an error', async (start) => {
  const headers = { 'x-long': 'y'.repeat(300_000) }
  const server = await start({ routes: { '/': () => new Response('x', { headers }) } })
  const { responses } = await converse(server.port, ['GET / HTTP/1.1\r\nHost: x\r\n\r\n'], { responses: 1 })
  assert.deepEqual(
    responses.map(({ status }) => status),
    [500],
  )
})

test('a global fetch or class that was replaced before the server started is kept', async () => {
  const { fetch: before, Response: ownResponse } = globalThis
  const asked: unknown[] = []
  class Mine extends ownResponse {}
  globalThis.fetch = (input, init) => {
    asked.push(input)
    return before(input, init)
  }
  globalThis.Response = Mine
  const traced = globalThis.fetch
  try {
    const server = await serve({ quiet: true, host: '127.0.0.1', port: 0, routes: { '/': () => 'ok' } })
    assert.equal(globalThis.Response, Mine)
    assert.equal(await (await fetch(server.url)).text(), 'ok')
    assert.deepEqual(asked, [server.url])
    await server.close()
    assert.equal(globalThis.fetch, traced)
    assert.equal(globalThis.Response, Mine)
  } finally {
    globalThis.fetch = before
    globalThis.Response = ownResponse
  }
})
