/**
 * Listeners for node:http through `nodeHandler`: what a client and the listener see is what they see on a
 * server of node:http, which is the oracle.
 *
 * Left out of the comparison is what cores write themselves. Where the adapter differs on purpose, a test
 * below has the difference.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { until } from '../../base/wait.test.support.ts'
import { onCores, onServer, type Start } from '../cores.test.support.ts'
import { createApp, type HttpError, nodeHandler, use } from '../index.ts'
import { loadApp } from '../internal.ts'

type Log = (...parts: unknown[]) => void
type Listen = (req: http.IncomingMessage, res: http.ServerResponse, log: Log) => unknown

interface Ask {
  readonly path?: string
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: string | Buffer
  /** Sent chunked, with these trailers. */
  readonly trailers?: Record<string, string>
  /** The client leaves when it has received the head, or after sending without one. */
  readonly leaves?: boolean
  /** Ends the client's wait: as often as this is logged. */
  readonly until?: string
}

/** Headers that a core writes, or that depend on how a body is framed. */
const IGNORED = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length'])

/** What a client sees, with what the listener has logged. */
async function seen(port: number, ask: Ask, log: string[]): Promise<unknown> {
  const { path = '/a?b=1', method = 'GET', headers = {}, body, trailers, leaves, until: last } = ask
  const request = http.request({ port, path, method, headers, agent: false })
  const hints: unknown[] = []
  request.on('information', ({ statusCode, headers: hinted }) => hints.push([statusCode, hinted['link']]))
  if (trailers !== undefined) {
    request.setHeader('trailer', Object.keys(trailers))
    request.write(body ?? 'x')
    request.addTrailers(trailers)
    request.end()
  } else request.end(body)
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    if (leaves) request.destroy()
    const pieces: Buffer[] = []
    for await (const piece of response) pieces.push(piece as Buffer)
    // A core may join the values of a header that comes several times.
    const pairs = Object.entries(response.headersDistinct).map(([name, values]) =>
      name === 'set-cookie' ? `${name}: ${values!.join('\n')}` : `${name}: ${values!.join(', ')}`,
    )
    await logged(log, last)
    return {
      status: response.statusCode,
      headers: pairs
        .filter((pair) => !IGNORED.has(pair.split(':')[0]) && !pair.startsWith('trailer:'))
        .sort(),
      body: Buffer.concat(pieces).toString('latin1'),
      trailers: response.trailers,
      hints,
      log,
    }
  } catch (error) {
    await logged(log, last)
    return { error: (error as NodeJS.ErrnoException).code === 'ECONNRESET', log }
  }
}

async function logged(log: string[], last: string | undefined): Promise<void> {
  if (last !== undefined) await until(() => log.includes(last), `the log of ${last}`)
}

/** Asks a listener on node:http and through the adapter. */
function check(name: string, listen: Listen, ...asked: Ask[]): void {
  onCores(name, async (start) => {
    for (const ask of asked.length === 0 ? [{}] : asked)
      assert.deepEqual(await adapted(start, listen, ask), await direct(listen, ask), JSON.stringify(ask))
  })
}

async function direct(listen: Listen, ask: Ask): Promise<unknown> {
  const log: string[] = []
  const server = http.createServer(
    (req, res) => void listen(req, res, (...parts) => log.push(parts.join(' '))),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await seen((server.address() as AddressInfo).port, ask, log)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

async function adapted(start: Start, listen: Listen, ask: Ask): Promise<unknown> {
  const log: string[] = []
  const handler = nodeHandler((req: http.IncomingMessage, res: http.ServerResponse) =>
    listen(req, res, (...parts) => log.push(parts.join(' '))),
  )
  const server = await start({ fetch: handler })
  try {
    return await seen(server.port, ask, log)
  } finally {
    await server.close({ timeoutMs: 100 })
  }
}

const codeOf = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}

check(
  'a request has its method, target, version and headers',
  (req, res) => {
    const { method, url, httpVersion, complete, headers, trailers, rawTrailers } = req
    const sorted = Object.entries(headers)
      .filter(([name]) => name !== 'host')
      .sort()
    res.end(JSON.stringify([method, url, httpVersion, complete, sorted, trailers, rawTrailers]))
  },
  { headers: { 'X-A': ['1', '2'], cookie: 'a=1' } },
  { method: 'DELETE', path: '/x/%41?q' },
)

for (const [name, respond] of Object.entries<Listen>({
  'an object': (_, res) => res.writeHead(201, { 'X-A': 1, 'x-b': ['1', '2'] }).end('x'),
  'a phrase and an object': (_, res) => res.writeHead(200, 'Fine', { 'x-a': '1' }).end('x'),
  'a flat array': (_, res) => res.writeHead(200, ['x-a', '1', 'x-a', '2'] as never).end('x'),
  'an array of pairs': (_, res) =>
    res
      .writeHead(200, [
        ['x-a', '1'],
        ['x-b', '2'],
      ] as never)
      .end('x'),
  'headers that were set before': (_, res) => {
    res.setHeader('x-a', '1').setHeader('X-B', ['2', '3'])
    res.writeHead(404, { 'x-a': '4', 'content-type': 'text/html' }).end('x')
  },
  'an array over headers that were set before': (_, res) => {
    res.setHeader('x-a', '1')
    res.writeHead(200, ['x-a', '2', 'x-a', '3', 'x-c', '4'] as never).end('x')
  },
  'headers that were set': (_, res) => {
    res.statusCode = 202
    res.setHeader('Set-Cookie', ['a=1', 'b=2']).setHeader('cookie', ['c', 'd']).setHeader('x-left', '1')
    res.appendHeader('set-cookie', 'e=3').removeHeader('x-left')
    res.end(JSON.stringify([res.getHeaderNames(), res.hasHeader('X-Left'), res.getHeaders()]))
  },
  'a map of headers': (_, res) => {
    ;(res as unknown as { setHeaders(headers: Headers): void }).setHeaders(new Headers({ 'x-a': '1' }))
    res.end('x')
  },
}))
  check(`the head of a response is made of ${name}`, respond)

check(
  'responses without a body',
  (req, res) => {
    res.statusCode = Number(req.url!.slice(1))
    res.setHeader('etag', '"1"')
    res.end(res.statusCode === 304 ? undefined : 'body')
  },
  { path: '/204' },
  { path: '/304' },
  { path: '/200', method: 'HEAD' },
)

check(
  'bodies in every form',
  (req, res) => {
    const form = req.url!.slice(1)
    if (form === 'latin1') res.end('\xe9\xff', 'latin1')
    else if (form === 'base64') res.end('aGVsbG8=', 'base64')
    else if (form === 'utf8') res.end('h\xe9', 'utf8')
    else if (form === 'bytes') res.end(new Uint8Array([1, 2, 3]))
    else if (form === 'buffer') res.end(Buffer.from('buffer'))
    else if (form === 'none') res.end()
    else if (form === 'callback') res.end(() => {})
    else if (form === 'pieces') {
      res.write('one ')
      res.write('74776f', 'hex')
      res.write(Buffer.from(' three'))
      res.end()
    } else setTimeout(() => (res.write('late '), setTimeout(() => res.end('later'))))
  },
  ...['latin1', 'base64', 'utf8', 'bytes', 'buffer', 'none', 'callback', 'pieces', 'late'].map((form) => ({
    path: `/${form}`,
  })),
)

check(
  'events and callbacks come in order, and the states of a response follow',
  (req, res, log) => {
    const state = (): unknown[] => [
      res.headersSent,
      res.finished,
      res.writableEnded,
      res.writableFinished,
      res.destroyed,
      res.closed,
    ]
    log(...state())
    for (const event of ['finish', 'close', 'error', 'drain']) res.on(event, () => log(event, ...state()))
    if (req.url === '/pieces') res.write('a', () => log('written'))
    res.end('b', () => log('ended'))
    log(
      res.headersSent,
      res.finished,
      res.writableEnded,
      res.destroyed,
      codeOf(() => res.setHeader('a', 'b')),
      codeOf(() => res.writeHead(200)),
    )
    res.end()
    res.on('close', () => log('over'))
  },
  { path: '/whole', until: 'over' },
  { path: '/pieces', until: 'over' },
)

check(
  'invalid heads are refused with the codes of Node, and the response can still be made',
  (_, res, log) => {
    log(
      codeOf(() => res.setHeader('a b', 'c')),
      codeOf(() => res.setHeader('a', 'b\r\nc')),
    )
    log(
      codeOf(() => res.setHeader('a', undefined as never)),
      codeOf(() => res.writeHead(99)),
    )
    log(
      codeOf(() => res.writeHead(1000)),
      codeOf(() => res.writeHead(200, { 'a b': 'c' })),
    )
    log(
      codeOf(() => res.writeHead(200, { a: 'b\n' })),
      codeOf(() => res.writeHead(200, { a: undefined })),
    )
    log(
      codeOf(() => res.write(5)),
      codeOf(() => res.end({} as never)),
      res.headersSent,
    )
    res.statusCode = 200
    res.end('ok')
  },
)

check(
  'bytes may be reused once their callback is called',
  (req, res) => {
    const bytes = Buffer.alloc(1000)
    let left = 5
    const next = (): void => {
      bytes.fill(left)
      left -= 1
      if (left < 0) res.end(bytes, () => bytes.fill(9))
      else res.write(bytes, next)
    }
    setTimeout(() => (req.url === '/whole' ? res.end(bytes, () => bytes.fill(9)) : next()))
  },
  { path: '/pieces' },
  { path: '/whole' },
)

check(
  'a body is read and sent back in pieces',
  (req, res) => pipeline(req, res),
  { method: 'POST', body: Buffer.alloc(1_000_000, 'abc') },
  { method: 'POST', body: 'short' },
  { method: 'POST', body: '', headers: { 'content-length': 0 } },
)

check(
  'the trailers of a request are there after its body',
  async (req, res, log) => {
    req.on('end', () => log('end', req.complete)).on('close', () => log('close', req.aborted))
    for await (const _ of req) continue
    res.end(JSON.stringify([req.trailers, req.rawTrailers.length]))
  },
  { method: 'POST', trailers: { 'x-sum': '7' }, until: 'close false' },
)

check(
  'trailers that the head announces follow the response',
  (_, res) => {
    res.setHeader('Trailer', 'X-Sum, x-other')
    res.write('a')
    res.addTrailers({ 'x-sum': '7' })
    res.end('b')
  },
  { headers: { te: 'trailers' } },
)

check('early hints come before the response', (_, res) => {
  res.writeEarlyHints({ link: ['</a.css>; rel=preload', '</b.js>; rel=preload'] }, () => res.end('x'))
})

check(
  'a flushed head comes before the body',
  (req, res, log) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.flushHeaders()
    req.on('close', () => log('left'))
    res.on('close', () => log('closed', res.writableFinished))
  },
  { leaves: true, until: 'left' },
)

check(
  'a client that leaves before the response is seen on the request and the response',
  (req, res, log) => {
    req.on('aborted', () => log('aborted')).on('error', (error: NodeJS.ErrnoException) => log(error.code))
    req.on('close', () => log('request closed', req.destroyed, req.aborted))
    res.on('close', () => log('response closed', res.writableFinished))
    res.on('finish', () => log('finish'))
    res.write('begun')
    res.on('close', () => setImmediate(() => setImmediate(() => log(res.write('x'), 'all'))))
    res.on('error', (error: NodeJS.ErrnoException) => log(error.code))
  },
  { leaves: true, until: 'false all' },
)

check(
  'destroying the request, the response or the socket ends the connection',
  (req, res, log) => {
    res.on('close', () => log('closed'))
    if (req.url === '/req') req.destroy()
    else if (req.url === '/res') res.destroy()
    else if (req.url === '/socket') req.socket.destroy()
    else res.write('x', () => res.destroy())
  },
  { path: '/req', until: 'closed' },
  { path: '/res', until: 'closed' },
  { path: '/socket', until: 'closed' },
  { path: '/late', until: 'closed' },
)

check('as many pieces as an app writes without waiting arrive in order', (_, res) => {
  for (let piece = 0; piece < 2000; piece += 1) res.write(`${piece} `)
  res.end('end')
})

onCores('callbacks of what a client that leaves has not taken are called', async (start) => {
  const log: string[] = []
  const listen = (_: http.IncomingMessage, res: http.ServerResponse): void => {
    const piece = Buffer.alloc(4_000_000)
    for (let left = 8; left > 0; left -= 1) res.write(piece, () => log.push('called'))
    res.on('close', () => log.push('closed'))
  }
  const server = await start({ fetch: nodeHandler(listen) })
  await seen(server.port, { leaves: true, until: 'closed' }, log)
  assert.deepEqual(log, [...Array.from({ length: 8 }, () => 'called'), 'closed'])
})

check('write reports a slow client, and drain its progress', async (_, res, log) => {
  let isFull = false
  for (let piece = 0; piece < 200; piece += 1) {
    if (res.write(Buffer.alloc(65_536, piece % 256))) continue
    isFull = true
    if (!res.writableNeedDrain) log('not full')
    await once(res, 'drain')
    if (res.writableNeedDrain) log('still full')
  }
  log(isFull)
  res.end()
})

check(
  'a body that nobody has read is dropped after the response',
  (req, res, log) => {
    req.on('close', () => log('closed', req.aborted, req.complete)).on('end', () => log('end'))
    res.end('x')
  },
  { until: 'closed false true' },
  { method: 'POST', body: 'unread', until: 'closed false true' },
)

check(
  'a body that has arrived can be read after the response',
  (req, res, log) => {
    let body = ''
    res.end('accepted')
    req.on('data', (piece) => (body += String(piece))).on('end', () => log(body, req.complete))
  },
  { method: 'POST', body: 'read late', until: 'read late true' },
  { until: ' true' },
)

check('a socket has the facts of its connection', (req, res, log) => {
  const { socket } = req
  const { remoteAddress, remoteFamily, localAddress, localFamily, destroyed, readable, writable } = socket
  log(remoteAddress, remoteFamily, localAddress, localFamily, destroyed, readable, writable)
  log(typeof socket.remotePort, typeof socket.localPort, (socket as TLSSocket).encrypted, res.req === req)
  log(JSON.stringify(Object.keys(socket.address()).sort()), socket === res.socket, req.connection === socket)
  log(
    socket.setNoDelay() === socket,
    socket.setKeepAlive() === socket,
    socket.ref() === socket,
    socket.readyState,
  )
  ;(socket as TLSSocket).encrypted = true // as behind a proxy that ends TLS
  log((socket as TLSSocket).encrypted)
  log(socket.unref() === socket, socket.pause() === socket, socket.resume() === socket, res.writableLength)
  res.end('x')
})

check('a response that takes too long is timed out', (_, res, log) => {
  res.setTimeout(5, () => {
    log('timeout')
    res.statusCode = 503
    res.end('too late')
  })
})

check(
  'a request without a listener for its timeout ends its connection',
  (req, res, log) => {
    res.on('close', () => log('closed'))
    req.setTimeout(5)
  },
  { until: 'closed' },
)

onCores('the time of a timeout begins again with each piece received, written and sent', async (start) => {
  const counts: number[] = []
  const listen = async (req: http.IncomingMessage, res: http.ServerResponse): Promise<void> => {
    const socket = req.socket as unknown as { touched(): void }
    const { touched } = socket
    let count = 0
    socket.touched = () => {
      count += 1
      touched.call(socket)
    }
    req.setTimeout(60_000)
    for await (const _ of req) continue
    counts.push(count)
    count = 0
    await new Promise((resolve) => res.write('a', resolve))
    counts.push(count)
    res.end()
  }
  const server = await start({ fetch: nodeHandler(listen) })
  await (await fetch(server.url, { method: 'POST', body: 'piece' })).text()
  const [received, sent] = counts
  assert.ok(received > 2, `${received}`) // setTimeout, the piece, the end
  assert.equal(sent, 2)
})

onServer('any head that Node accepts is sent as Node does, others are refused alike', async (start) => {
  // Values beyond ASCII are Latin-1 here; node:http sends them as UTF-8 in front of a body that is a string.
  const name = fc.constantFrom('x-a', 'X-B', 'set-cookie', 'Content-Type', 'cookie', 'vary', 'a b', '', 'é')
  const value = fc.oneof(
    fc.constantFrom<unknown>('', ' a ', '1', 7, ['1', '2'], [], 'a\tb', '\u{1f600}', 'a\r\nb', null),
    fc.string({ maxLength: 5 }),
  )
  const step = fc.record({
    how: fc.constantFrom('set', 'append', 'remove', 'head', 'flat', 'pairs'),
    pairs: fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 3 }),
  })
  let steps: { how: string; pairs: [string, unknown][] }[] = []
  const listen: Listen = (_, res, log) => {
    // Copied: `appendHeader` changes the array that was set.
    for (const { how, pairs } of structuredClone(steps)) {
      const [[first, given]] = pairs
      log(
        codeOf(() => {
          if (how === 'set') res.setHeader(first, given as never)
          else if (how === 'append') res.appendHeader(first, given as never)
          else if (how === 'remove') res.removeHeader(first)
          else if (how === 'head') res.writeHead(200, Object.fromEntries(pairs) as never)
          else res.writeHead(200, (how === 'flat' ? pairs.flat() : pairs) as never)
        }),
      )
    }
    log(codeOf(() => res.end('x')))
    if (!res.writableEnded) res.socket!.destroy()
  }
  const logs: [string[], string[]] = [[], []]
  const to =
    (at: 0 | 1): Log =>
    (...parts) =>
      logs[at].push(parts.join(' '))
  const oracle = http.createServer((req, res) => listen(req, res, to(0)))
  await once(oracle.listen(0, '127.0.0.1'), 'listening')
  const handler = nodeHandler((req: http.IncomingMessage, res: http.ServerResponse) =>
    listen(req, res, to(1)),
  )
  const server = await start({ fetch: handler })
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 4 }), async (drawn) => {
        steps = drawn
        logs[0].length = logs[1].length = 0
        const expected = await seen((oracle.address() as AddressInfo).port, {}, logs[0])
        assert.deepEqual(await seen(server.port, {}, logs[1]), expected)
      }),
      { numRuns: 100 },
    )
  } finally {
    oracle.close()
    oracle.closeAllConnections()
  }
})

onCores(
  'a failure before the response is a 500, after its head an abort; both are reported',
  async (start) => {
    const causes: unknown[] = []
    const failing = (req: http.IncomingMessage, res: http.ServerResponse): unknown => {
      if (req.url === '/throws') throw new Error('throws')
      if (req.url === '/rejects') return Promise.reject(new Error('rejects'))
      res.write('begun')
      return new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 5))
    }
    const server = await start({ fetch: nodeHandler(failing), error: (cause) => void causes.push(cause) })
    assert.equal((await fetch(`${server.url}/throws`)).status, 500)
    assert.equal((await fetch(`${server.url}/rejects`)).status, 500)
    await assert.rejects(async () => (await fetch(`${server.url}/late`)).text())
    assert.deepEqual(
      causes.map((cause) => (cause as Error).message),
      ['throws', 'rejects', 'late'],
    )
    assert.equal(server.stats().errors, 3)
  },
)

onCores('an app that rejects because its client has left does not end the process', async (start) => {
  const log: string[] = []
  const listen = async (_: http.IncomingMessage, res: http.ServerResponse): Promise<void> => {
    res.write('begun')
    await once(res, 'close')
    log.push('rejects')
    throw new Error('the client has left')
  }
  const server = await start({ fetch: nodeHandler(listen) })
  await seen(server.port, { leaves: true, until: 'rejects' }, log)
  await new Promise((resolve) => setImmediate(resolve)) // an unhandled rejection fails the test
  assert.equal(server.stats().errors, 0)
})

onCores('what the core cannot send or hand over is refused by a code with the remedy', async (start) => {
  const codes: unknown[] = []
  const listen = (req: http.IncomingMessage, res: http.ServerResponse): void => {
    for (const act of [
      () => res.writeHead(101),
      () => req.socket.write('HTTP/1.1 101'),
      () => req.socket.end('x'),
      () => res.writeHead(700),
    ])
      codes.push(codeOf(act))
    res.writeHead(200).end('ok')
  }
  const server = await start({ routes: { '/*': nodeHandler(listen) } })
  assert.equal((await fetch(server.url)).status, 200)
  assert.deepEqual(codes, ['HTTP_UPGRADE', 'HTTP_UPGRADE', 'HTTP_UPGRADE', 'HTTP_RESPONSE'])
})

onCores('a body beyond the limit is an error of the request, which can be responded to', async (start) => {
  let hasBegun = false
  const listen = (req: http.IncomingMessage, res: http.ServerResponse): void => {
    req.once('data', () => (hasBegun = true))
    req.on('error', (error: HttpError) => res.writeHead(error.status).end(error.code))
  }
  const server = await start({ fetch: nodeHandler(listen), limits: { bodyBytesMax: 1000 } })
  const request = http.request({ port: server.port, method: 'POST', agent: false })
  request.on('error', () => {}) // the connection may close under what is still sent
  request.write(Buffer.alloc(900))
  await until(() => hasBegun)
  request.write(Buffer.alloc(900))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const body = (await response.toArray()).join('')
  request.destroy()
  assert.deepEqual([response.statusCode, body], [413, 'HTTP_BODY_TOO_LARGE'])
})

onCores('a body beyond the limit is a 413 where the app does not listen for the error', async (start) => {
  const log: string[] = []
  const listen = (req: http.IncomingMessage, res: http.ServerResponse): void => {
    req.on('data', () => log.push('data')).on('end', () => res.end('whole'))
    res.on('close', () => log.push('closed'))
  }
  const server = await start({ fetch: nodeHandler(listen), limits: { bodyBytesMax: 1000 } })
  const request = http.request({ port: server.port, method: 'POST', agent: false })
  request.on('error', () => {}) // the connection may close under what is still sent
  request.write(Buffer.alloc(900))
  await until(() => log.includes('data'))
  request.write(Buffer.alloc(900))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  request.destroy()
  await until(() => log.includes('closed'))
  assert.equal(response.statusCode, 413)
})

onCores('100 is sent by the core alone, and 102 is not', async (start) => {
  const listen = (_: http.IncomingMessage, res: http.ServerResponse): void => {
    res.writeContinue(() => res.writeProcessing(() => res.end('ok')))
  }
  const server = await start({ fetch: nodeHandler(listen) })
  const log: string[] = []
  const { hints, body } = (await seen(server.port, {}, log)) as { hints: unknown[]; body: string }
  assert.deepEqual([hints, body], [[], 'ok'])
})

onCores('a response without a body sends its head when it is flushed, and ends', async (start) => {
  const events: string[] = []
  const listen = (_: http.IncomingMessage, res: http.ServerResponse): void => {
    res.flushHeaders()
    res.on('finish', () => events.push('finish')).on('close', () => events.push('close'))
    res.write('dropped', () => events.push('written'))
    setTimeout(() => res.end('dropped'))
  }
  const sync = (_: http.IncomingMessage, res: http.ServerResponse): void => {
    res.flushHeaders()
    res.on('close', () => events.push('closed'))
    res.end()
  }
  const server = await start({ routes: { '/a': nodeHandler(listen), '/b': nodeHandler(sync) } })
  for (const path of ['/a', '/a', '/b', '/b'])
    assert.equal((await fetch(server.url + path, { method: 'HEAD' })).status, 200)
  const countOf = (name: string): number => events.filter((event) => event === name).length
  await until(() => countOf('closed') === 2 && countOf('close') === 2)
  assert.deepEqual([countOf('finish'), countOf('written')], [2, 2])
})

onCores('an app that throws sees the end of its request and response', async (start) => {
  const log: string[] = []
  const listen = (req: http.IncomingMessage, res: http.ServerResponse): void => {
    req.on('close', () => log.push('request'))
    res.on('close', () => log.push('response'))
    if (req.url === '/begun') res.write('a')
    throw new Error('thrown')
  }
  const server = await start({ fetch: nodeHandler(listen) })
  for (const path of ['/', '/begun']) {
    assert.equal((await fetch(server.url + path)).status, 500)
    await until(() => log.includes('request') && log.includes('response'))
    log.length = 0
  }
  assert.equal(server.stats().errors, 2)
})

test('an app whose response middleware replaces sees that nobody takes it', async () => {
  const log: string[] = []
  const listen = (_: http.IncomingMessage, res: http.ServerResponse): void => {
    res.on('close', () => log.push('close'))
    log.push(String(res.write(Buffer.alloc(100_000))))
  }
  const routes = use({ '/*': nodeHandler(listen) }, async (_, next) => {
    await (await next()).body?.cancel()
    return new Response('another', { status: 503 })
  })
  assert.equal((await createApp({ routes }).inject('/')).status, 503)
  await until(() => log.includes('close'))
  assert.deepEqual(log, ['false', 'close'])
})

test('middleware around it sees and changes the response', async () => {
  const listen = (req: http.IncomingMessage, res: http.ServerResponse): void => {
    res.setHeader('x-inner', '1')
    if (req.url === '/stream') res.write('a')
    res.end('b')
  }
  const routes = use({ '/*': nodeHandler(listen) }, async (request, next) => {
    const response = await next()
    response.headers.set('x-outer', response.headers.get('x-inner')! + request.method)
    return response
  })
  const app = createApp({ routes })
  for (const [path, body] of [
    ['/whole', 'b'],
    ['/stream', 'ab'],
  ]) {
    const response = await app.inject(path)
    assert.deepEqual([response.headers.get('x-outer'), await response.text()], ['1GET', body])
    assert.equal(response.headers.get('content-type'), null)
  }
})

test('apps of koa, fastify and Nest are taken as they are, other values are refused', async () => {
  const listen = (_: http.IncomingMessage, res: http.ServerResponse): void => void res.end('ok')
  const koa = { callback: () => listen, use: () => {} }
  const fastify = { ready: () => Promise.resolve(), routing: listen, inject: () => {}, register: () => {} }
  const nest = (instance: unknown) => ({
    init: () => Promise.resolve(),
    getHttpAdapter: () => ({ getInstance: () => instance, close: () => {} }),
    close: () => Promise.resolve(),
  })
  for (const app of [koa, fastify, listen, nest(listen), nest(fastify)])
    assert.equal(await (await createApp({ fetch: nodeHandler(app) }).inject('/')).text(), 'ok')
  const broken = { ...fastify, ready: () => Promise.reject(new Error('no database')) }
  const causes: unknown[] = []
  const app = createApp({ fetch: nodeHandler(broken), error: (cause) => void causes.push(cause) })
  assert.equal((await app.inject('/')).status, 500)
  assert.match(String(causes[0]), /no database/)
  for (const value of [5, undefined, null, {}, { callback: listen }, 'app'])
    assert.throws(() => nodeHandler(value as never), { code: 'HTTP_ARGUMENT' })
  assert.throws(() => void nodeHandler(listen)(new Request('http://localhost')), { code: 'HTTP_ARGUMENT' })
})

test('the module of an app may export a listener, or an app of koa', async () => {
  const sources = [
    'export default (req, res) => res.end(req.url)',
    'export default function (request, response) { response.end(request.url) }',
    'export const app = { use() {}, callback: () => (req, res) => res.end(req.url) }',
  ]
  for (const source of sources) {
    const app = await loadApp({ app: `data:text/javascript,${encodeURIComponent(source)}` })
    assert.equal(await (await createApp(app as never).inject('/a')).text(), '/a')
  }
})

test('an app of fastify is closed as where it listens: onClose comes after the open requests', async () => {
  for (const last of ['', 'await app.ready()']) {
    const source = `import { fastify } from ${JSON.stringify(import.meta.resolve('fastify'))}
      export const log = []
      const app = fastify()
      app.addHook('preClose', async () => void log.push('preClose'))
      app.addHook('onClose', async () => void log.push('onClose'))
      app.get('/a', async () => 'a')
      ${last}
      export default app`
    const url = `data:text/javascript,${encodeURIComponent(source)}`
    const { close, ...app } = await loadApp({ app: url })
    const { log } = (await import(url)) as { log: string[] }
    assert.equal(await (await createApp(app as never).inject('/a')).text(), 'a')
    let drain = (): void => {}
    const closed = close!(new Promise((resolve) => (drain = resolve)))
    if (last === '') await until(() => log.includes('preClose'))
    log.push('drained')
    drain()
    await closed
    const expected = ['preClose', 'drained', 'onClose']
    assert.deepEqual(log, last === '' ? expected : ['drained', 'preClose', 'onClose'])
  }
})

const moduleOf = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`

test('an app of Nest is closed between its hooks, after the open requests', async () => {
  const url = moduleOf(`
    export const log = []
    const getInstance = () => (req, res) => res.end(log[0])
    const adapter = { getInstance, close: async () => void log.push('adapter') }
    const app = {
      init: async () => void log.push('init'),
      getHttpAdapter: () => adapter,
      async close() {
        log.push('destroy')
        await adapter.close()
        log.push('shutdown')
      },
    }
    export default Promise.resolve(app)`)
  const { close, ...app } = await loadApp({ app: url })
  const { log } = (await import(url)) as { log: string[] }
  assert.equal(await (await createApp(app as never).inject('/')).text(), 'init')
  let drain = (): void => {}
  const closed = close!(new Promise((resolve) => (drain = resolve)))
  log.push('drained')
  drain()
  await closed
  assert.deepEqual(log, ['init', 'destroy', 'drained', 'adapter', 'shutdown'])
})

test('a module whose app fails to begin does not load', async () => {
  const server = '{ port: 1, close: async () => void (globalThis.closed = true), [Symbol.asyncDispose]() {} }'
  const unready = '{ inject() {}, register() {}, routing() {}, ready: () => Promise.reject("no plugin") }'
  for (const [source, message] of [
    ['export default Promise.reject("no database")', /the promise of it failed: no database/],
    ['export const app = Promise.reject("no table")', /the promise of it failed: no table/],
    [`export default ${unready}`, /its start failed: no plugin/],
    [`export default Promise.resolve(${server})`, /default export is a running server/],
    ['export default Promise.resolve(5)', /default export is not an app/],
  ] as const)
    await assert.rejects(loadApp({ app: moduleOf(source) }), { code: 'HTTP_APP', message }, source)
  assert.equal((globalThis as { closed?: boolean }).closed, true)
})

onCores("the globals stay Node's where a listener is served", async (start) => {
  const { Response: before } = globalThis
  await start({ fetch: nodeHandler((_: unknown, res: http.ServerResponse) => res.end('x')) })
  assert.equal(globalThis.Response, before)
})
