/**
 * Requests that are read late: after the response, after the connection, after the server.
 *
 * The oracle is what the client has sent. What was the head's is read as if nothing had ended, on each core,
 * and nothing throws. A body that nobody read by then is the body, or a rejection with a code.
 * CORESPUN_SEEDS=1000 plays 1,000 random orders instead of a few, CORESPUN_SEED the one that a failure
 * names.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import { settled, until } from '../base/wait.test.support.ts'
import { onCores, onServer } from './cores.test.support.ts'
import * as h2 from './http2/client.test.support.ts'
import type { HttpRequest, HttpServer, Routes } from './index.ts'
import { connect } from './raw.test.support.ts'
import { AUTHORITY, certified, PATIENT, request as secure, SERVER } from './tls/client.test.support.ts'

/** What a client asks for. */
interface Sent {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

type Read = (request: HttpRequest) => unknown

/** Each fact of a head: what is read, and what it is for what was sent. */
const FACTS: Readonly<Record<string, [Read, (sent: Sent, server: HttpServer) => unknown]>> = {
  method: [(r) => r.method, () => 'GET'],
  url: [(r) => r.url, ({ path }, { port }) => `http://127.0.0.1:${port}${path}`],
  params: [(r) => ({ ...r.params }), ({ path }) => ({ name: new URL(path, 'http://x').pathname.slice(3) })],
  ip: [(r) => r.ip, () => '127.0.0.1'],
  remoteAddress: [(r) => r.remoteAddress, () => '127.0.0.1'],
  certificate: [(r) => r.clientCertificate, () => undefined],
  header: [(r) => r.headers.get('x-name'), ({ headers }) => headers['x-name']],
  missing: [(r) => r.headers.get('x-none'), () => null],
  cookie: [(r) => r.headers.get('cookie'), ({ headers }) => headers.cookie],
  headers: [
    (r) => [...r.headers].filter(([name]) => name.startsWith('x-')),
    ({ headers }) => Object.entries(headers).filter(([name]) => name.startsWith('x-')),
  ],
  signal: [(r) => r.signal.aborted, () => false],
  body: [(r) => r.body, () => null],
  bodyUsed: [(r) => r.bodyUsed, () => false],
  trailers: [(r) => [...r.trailers], () => []],
  clone: [(r) => r.clone().headers.get('x-name'), ({ headers }) => headers['x-name']],
  request: [(r) => new Request(r.url, r).headers.get('x-name'), ({ headers }) => headers['x-name']],
}

/** Handlers that keep their request, in each way that a response is made. */
function keeping(kept: Map<string, HttpRequest>): Routes {
  const keep = (request: HttpRequest): void => void kept.set(request.params.name, request)
  return {
    '/a/:name': (request) => (keep(request), 'at once'),
    '/b/:name': async (request) => (keep(request), await Promise.resolve(), 'in a microtask'),
    '/c/:name': async (request) => (keep(request), await new Promise(setImmediate), 'in a later turn'),
    '/d/:name': async function* (request: HttpRequest) {
      keep(request)
      yield 'a'
      await new Promise(setImmediate)
      yield 'stream'
    },
    '/e/:name': (request) => {
      keep(request)
      throw new Error('a 500')
    },
  }
}

function sentOf(kind: string, at: number): Sent {
  const name = `${kind}${at}`
  const headers = { 'x-name': name, 'x-rest': 'r'.repeat(at % 300), cookie: `n=${name}` }
  return { path: `/${kind}/${name}${at % 2 === 0 ? `?q=${at}` : ''}`, headers }
}

async function get(server: HttpServer, { path, headers }: Sent, agent: http.Agent): Promise<void> {
  const asked = http.get(server.url + path, { agent, headers })
  const [response] = (await settled(once(asked, 'response'), 'a response')) as [http.IncomingMessage]
  await settled(once(response.resume(), 'end'), 'its end')
}

for (const moment of ['response', 'connection', 'server'] as const) {
  onCores(`every fact of a head is read first after the end of the ${moment}`, async (start) => {
    const kept = new Map<string, HttpRequest>()
    const server = await start({ routes: keeping(kept) })
    const agent = new http.Agent({ keepAlive: true })
    const asked = Object.keys(FACTS).flatMap((fact, at) =>
      ['a', 'b', 'c', 'd', 'e'].map((kind) => ({ fact, sent: sentOf(kind, at) })),
    )
    for (const { sent } of asked) await get(server, sent, agent)
    if (moment !== 'response') agent.destroy()
    if (moment === 'connection') await until(() => server.stats().connections === 0, 'no connection')
    if (moment === 'server') await server.close()
    for (const { fact, sent } of asked) {
      const [read, expected] = FACTS[fact]
      const request = kept.get(sent.headers['x-name'])!
      assert.deepEqual(read(request), expected(sent, server), `${fact} of ${sent.path}`)
    }
    agent.destroy()
  })
}

const SEEDS = process.env.CORESPUN_SEED?.split(',').map(Number) ?? [
  ...Array(Number(process.env.CORESPUN_SEEDS ?? 6)).keys(),
]

/** Numbers below `most`, the same for the same seed. */
function numbers(seed: number): (most: number) => number {
  let state = (seed + 1) * 0x9e37_79b9
  return (most) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b_3c6d) + 0x6d2b_79f5
    return ((state ^ (state >>> 12)) >>> 0) % most
  }
}

onCores('requests read at random moments are what the clients have sent', async (start) => {
  for (const seed of SEEDS) {
    try {
      const next = numbers(seed)
      const kept = new Map<string, HttpRequest>()
      const server = await start({ routes: keeping(kept) })
      const agents = Array.from({ length: 4 }, () => new http.Agent({ keepAlive: true, maxSockets: 4 }))
      const all: Sent[] = []
      const readOne = (): void => {
        const sent = all[next(all.length)]
        const names = Object.keys(FACTS)
        const fact = names[next(names.length)]
        const [read, expected] = FACTS[fact]
        const request = kept.get(sent.headers['x-name'])!
        assert.deepEqual(read(request), expected(sent, server), `${fact} of ${sent.path}`)
      }
      for (let turn = 0; turn < 12; turn++) {
        const batch = Array.from({ length: 1 + next(24) }, (_, at) =>
          sentOf('abcde'[next(5)], turn * 100 + at),
        )
        const agent = next(agents.length)
        await Promise.all(batch.map((sent) => get(server, sent, agents[agent])))
        all.push(...batch)
        for (let reads = next(8); reads > 0; reads--) readOne()
        if (next(4) === 0) agents[next(agents.length)].destroy()
      }
      for (const agent of agents) agent.destroy()
      await server.close()
      for (let reads = 0; reads < 100; reads++) readOne()
    } catch (cause) {
      throw new Error(`CORESPUN_SEED=${seed}: ${String(cause)}`, { cause })
    }
  }
})

onServer('heads beside large bodies, and of pipelines, are remembered as they were', async (start) => {
  const kept: HttpRequest[] = []
  const server = await start({ routes: { '/*': (request) => (kept.push(request), 'ok') } })
  const socket = await connect(server.port)
  const bytes = [0, 1, 2000, 0, 9000, 30, 0]
  const heads = bytes.map((_, at) => `POST /${at} HTTP/1.1\r\nHost: x\r\nX-At: ${at}\r\nContent-Length: `)
  socket.write(heads.map((head, at) => `${head}${bytes[at]}\r\n\r\n${'b'.repeat(bytes[at])}`).join(''))
  socket.resume()
  await until(() => kept.length === bytes.length, 'the requests')
  socket.destroy()
  await until(() => server.stats().connections === 0, 'no connection')
  const found = kept.map((r) => [r.url, r.headers.get('x-at'), r.headers.get('content-length')])
  const sent = bytes.map((length, at) => [`http://x/${at}`, `${at}`, `${length}`])
  assert.deepEqual(found, sent)
})

onServer('heads of HTTP/2 are read after their connection', async (start) => {
  const kept = new Map<string, HttpRequest>()
  const server = await start({ routes: keeping(kept) })
  const session = h2.connect(server.port)
  const asked = Array.from({ length: 40 }, (_, at) => sentOf('abcde'[at % 5], at))
  await Promise.all(asked.map(({ path, headers }) => h2.request(session, path, { headers })))
  session.destroy()
  await until(() => server.stats().connections === 0, 'no connection')
  for (const sent of asked)
    for (const fact of ['url', 'ip', 'params', 'header', 'cookie', 'headers']) {
      const [read, expected] = FACTS[fact]
      assert.deepEqual(read(kept.get(sent.headers['x-name'])!), expected(sent, server), fact)
    }
})

onCores('the certificate of a client is read after its connection', async (start) => {
  let kept: HttpRequest | undefined
  const tls = { ...SERVER, ca: AUTHORITY.cert }
  const server = await start({ limits: PATIENT, tls, routes: { '/': (request) => ((kept = request), 'ok') } })
  const { cert, key } = certified('client')
  await secure(server.port, '/', { cert, key })
  await until(() => server.stats().connections === 0, 'no connection')
  assert.equal(kept!.clientCertificate!.fingerprint256, new X509Certificate(cert).fingerprint256)
  assert.match(kept!.url, /^https:/)
})

onCores('a body that is read first after the response is the body, or a rejection', async (start) => {
  const kept: HttpRequest[] = []
  const server = await start({ routes: { '/': { POST: (request) => (kept.push(request), 'early') } } })
  const reads: Record<string, (request: HttpRequest) => Promise<unknown>> = {
    text: (r) => r.text(),
    json: (r) => r.json(),
    bytes: (r) => r.bytes(),
    stream: (r) => new Response(r.body).text(),
    clone: (r) => r.clone().text(),
    request: (r) => new Request(r.url, r).text(),
  }
  for (const read of Object.values(reads)) {
    const socket = await connect(server.port)
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"half":')
    await settled(once(socket, 'data'), 'the response')
    const found = settled(
      read(kept.at(-1)!).then(
        () => 'read',
        (error: { code?: string }) => error.code,
      ),
      'the end of a read',
    )
    socket.destroy()
    assert.match(`${await found}`, /^HTTP_(REQUEST_ENDED|CLIENT_DISCONNECTED)$/)
  }
})

onCores('a whole body that is read first behind others is the body, or a rejection', async (start) => {
  const kept: HttpRequest[] = []
  const server = await start({ routes: { '/': { POST: (request) => (kept.push(request), 'early') } } })
  const lengths = [1, 1000, 100_000]
  for (const length of [...lengths, 0]) {
    const socket = await connect(server.port)
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`)
    await settled(once(socket, 'data'), 'the response')
    socket.destroy()
  }
  for (const [index, length] of lengths.entries()) {
    const read = kept[index].text().catch((error: { code: string }) => error.code)
    const found = await settled(read, 'the end of a read')
    if (found !== 'x'.repeat(length)) assert.match(found, /^HTTP_(REQUEST_ENDED|CLIENT_DISCONNECTED)$/)
  }
})

onCores('a read of a large body that began before the response ends', async (start) => {
  const reads: Promise<unknown>[] = []
  const server = await start({
    routes: {
      '/': { POST: (request) => (reads.push(request.text().catch((error: unknown) => error)), 'early') },
    },
  })
  const socket = await connect(server.port)
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\nhalf')
  await settled(once(socket, 'data'), 'the response')
  socket.destroy()
  const [error] = (await settled(Promise.all(reads), 'the end of the read')) as [{ code: string }]
  assert.match(error.code, /^HTTP_(REQUEST_ENDED|CLIENT_DISCONNECTED)$/)
})
