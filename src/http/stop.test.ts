/**
 * What ends a server, a connection or a request: stop, slow and vanished clients, failed handlers.
 *
 * conformance.test.ts tests the bytes on the wire; this file uses a normal client.
 */
import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import http from 'node:http'
import { until } from '../base/wait.test.support.ts'
import { onCores, onServer } from './cores.test.support.ts'
import { connect } from './raw.test.support.ts'

onCores('a client that goes aborts the signal', async (start) => {
  let aborted = (_: unknown): void => {}
  const seen = new Promise((resolve) => (aborted = resolve))
  const server = await start({
    routes: {
      '/': (request) => {
        return new Promise((_, reject) => {
          request.signal.addEventListener('abort', () => {
            aborted(request.signal.reason)
            reject(request.signal.reason as Error)
          })
        })
      },
    },
  })
  const socket = await connect(server.port)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => server.stats().requests === 1)
  socket.destroy()
  assert.equal(((await seen) as Error).name, 'AbortError')
  assert.equal(server.stats().errors, 0)
})

onServer('a handler that rejects when the client stops sending leaves no connection', async (start) => {
  const server = await start({
    limits: { bodyMs: 600_000, idleMs: 600_000 },
    routes: {
      '/never': (request) =>
        new Promise((_, reject) => {
          request.signal.addEventListener('abort', () => reject(request.signal.reason as Error))
        }),
      '/stream': () => new Response(new ReadableStream({ start: (out) => out.enqueue(new Uint8Array(9)) })),
    },
  })
  for (const path of ['/never', '/stream']) {
    for (const more of ['', 'Connection: close\r\n']) {
      const socket = await connect(server.port)
      const closed = new Promise((resolve) =>
        socket
          .resume()
          .on('error', () => {})
          .on('close', resolve),
      )
      socket.end(`GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`)
      await closed
    }
  }
  assert.equal(server.stats().errors, 0)
})

onCores('a handler error is reported, the response is 500, and the server continues', async (start) => {
  const reported: unknown[] = []
  const published: unknown[] = []
  const subscriber = (message: unknown): void =>
    void published.push((message as { error: Error }).error.message)
  diagnostics.subscribe('corespun:http:error', subscriber)
  const server = await start({
    routes: {
      '/throws': () => {
        throw new Error('thrown')
      },
      '/rejects': async () => Promise.reject(new Error('rejected')),
      '/undefined': (() => undefined) as never,
      '/header': () => new Response('', { headers: { a: 'b\r\nc: d' } }),
      '/response': () => {
        throw new Response('teapot', { status: 418 })
      },
      '/mapped': () => {
        throw new RangeError('mapped')
      },
      '/ok': () => 'ok',
    },
    error: (cause, request) => {
      reported.push(`${new URL(request.url).pathname} ${(cause as Error).message}`)
      if (cause instanceof RangeError) return new Response('mapped', { status: 422 })
    },
  })
  const get = async (path: string): Promise<string> => {
    const response = await fetch(server.url + path)
    return `${response.status} ${await response.text()}`
  }
  assert.equal(await get('/throws'), '500 Internal Server Error')
  assert.equal(await get('/rejects'), '500 Internal Server Error')
  assert.equal(await get('/undefined'), '500 Internal Server Error')
  assert.equal(await get('/header'), '500 Internal Server Error')
  assert.equal(await get('/response'), '418 teapot')
  assert.equal(await get('/mapped'), '422 mapped')
  assert.equal(await get('/ok'), '200 ok')
  diagnostics.unsubscribe('corespun:http:error', subscriber)
  assert.deepEqual(reported.slice(0, 2), ['/throws thrown', '/rejects rejected'])
  assert.equal(reported.length, 5)
  assert.equal(published.length, 5)
  assert.equal(server.stats().errors, 5)
})

onCores('clients that go abort each of their pipelined requests', async (start) => {
  const aborted: string[] = []
  let begun = 0
  const server = await start({
    routes: {
      '/:at': (request) =>
        new Promise((_, reject) => {
          begun++
          request.signal.addEventListener('abort', () => {
            aborted.push(request.params.at)
            reject(request.signal.reason as Error)
          })
        }),
    },
  })
  const socket = await connect(server.port)
  socket.write(['a', 'b', 'c'].map((at) => `GET /${at} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  await until(() => begun === 3)
  socket.destroy()
  await until(() => aborted.length === 3)
  assert.deepEqual(aborted.sort(), ['a', 'b', 'c'])
  assert.equal(server.stats().aborted, 3)
})

onServer('a client that reads nothing of a whole response is cut, a slow one is not', async (start) => {
  const whole = new Uint8Array(16 * 1024 * 1024)
  const server = await start({ limits: { bodyMs: 500 }, routes: { '/': () => whole } })
  const text = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const still = await connect(server.port)
  still.pause().write(text)
  // A machine that is busy may pause a slow reader for as long as the limit: one of some ends.
  let bytes = 0
  for (let attempt = 1; bytes <= whole.byteLength; attempt++) {
    assert.ok(attempt <= 10, `each slow reader was cut, the last after ${bytes} bytes`)
    bytes = 0
    const slow = await connect(server.port)
    slow.on('data', (piece: Buffer) => {
      bytes += piece.byteLength
      slow.pause()
      setTimeout(() => slow.resume(), 4)
    })
    slow.write(text)
    await until(() => bytes > whole.byteLength || slow.destroyed || slow.readableEnded)
    slow.destroy()
  }
  await until(() => server.stats().connections === 0)
  still.destroy()
})

onCores('a graceful stop finishes what was accepted and closes idle connections', async (start) => {
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => (release = resolve))
  const server = await start({ routes: { '/slow': () => gate.then(() => 'done'), '/fast': () => 'fast' } })
  const agent = new http.Agent({ keepAlive: true })
  const get = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      http
        .get(server.url + path, { agent }, (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.on('end', () => resolve(text))
        })
        .on('error', reject)
    })
  assert.equal(await get('/fast'), 'fast')
  const slow = get('/slow')
  await until(() => server.stats().requests === 2)
  const stopped = server.close({ timeoutMs: 60_000 })
  let refused = false
  while (!refused) {
    await fetch(`${server.url}/fast`).then(
      (response) => response.text(),
      () => (refused = true),
    )
  }
  release()
  assert.equal(await slow, 'done')
  await stopped
  assert.equal(server.stats().connections, 0)
  await assert.rejects(get('/fast'))
  agent.destroy()
})

onCores('what does not end within closeMs is cut', async (start) => {
  const server = await start({ routes: { '/never': () => new Promise<string>(() => {}) } })
  const response = fetch(`${server.url}/never`)
  response.catch(() => {})
  await until(() => server.stats().requests === 1)
  await server.close({ timeoutMs: 50 })
  await assert.rejects(response)
})

onCores('the end of a server is two events, which have what was cut', async (start) => {
  const events: [string, object][] = []
  const listeners = ['corespun:http:closing', 'corespun:http:closed'].map(
    (name) => [name, (event: unknown) => void events.push([name, event as object])] as const,
  )
  for (const [name, listener] of listeners) diagnostics.subscribe(name, listener)
  try {
    const server = await start({ routes: { '/': () => new Promise(() => {}) } })
    const request = http.get(server.url, { agent: false }).on('error', () => {})
    await until(() => server.stats().requests === 1)
    await Promise.all([server.close({ timeoutMs: 20, delayMs: 1 }), server.close()])
    request.destroy()
    const [[, closing], [, closed]] = events.filter(
      ([, event]) => (event as { url: string }).url === server.url,
    )
    assert.deepEqual(closing, { url: server.url, timeoutMs: 20, delayMs: 1 })
    const { ms, cut } = closed as { ms: number; cut: number }
    assert.ok(ms >= 20)
    assert.equal(cut, 1)
    assert.equal(events.length, 2)
  } finally {
    for (const [name, listener] of listeners) diagnostics.unsubscribe(name, listener)
  }
})
