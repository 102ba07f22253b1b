/**
 * Properties of the native core alone: threads that share a port and die, responses out of order, memory
 * that is used again. What both cores do alike is in the conformance table.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import type { Core, CoreSettings, Exchange } from '../../message/core-interface.ts'
import type { CoreLimits } from '../../message/limits.ts'
import { createNativeCore } from './core.ts'
import { NativeExchange } from './exchange.ts'
import { NO_TARGET, WORDS_BYTES } from '../../message/layout.ts'
import { Hub } from '../../message/hub.ts'
import { Refusals } from '../../message/refusals.ts'
import { isRefused, request, SERVER } from '../../tls/client.test.support.ts'
import { readTls } from '../../message/credentials.ts'
import { parseTls } from '../../message/tls-options.ts'
import { NativeLink } from './link.ts'

const LIMITS: CoreLimits = {
  headerBytesMax: 16_384,
  headersMax: 100,
  targetBytesMax: 8192,
  bodyBytesMax: 1 << 20,
  idleMs: 10_000,
  headersMs: 10_000,
  bodyMs: 10_000,
  connectionsMax: 100,
  streamsMax: 8,
  resetsMax: 256,
  outBytesMax: 65_536,
  outBytesTotalMax: 1 << 28,
}

const HUB = new Hub((error) => assert.fail(String(error)))

function coreOf(onExchange: (exchange: Exchange) => void, more: Partial<CoreSettings> = {}): Core {
  const onFault = (error: unknown): void => assert.fail(String(error))
  const where = {
    host: '127.0.0.1',
    port: 0,
    unixPath: undefined,
    fd: undefined,
    reusePort: false,
  }
  const parts = {
    limits: LIMITS,
    constants: [],
    proxyProtocol: false,
    tls: undefined,
    hub: HUB,
    refusals: new Refusals(undefined, () => {}),
    onExchange,
    onFault,
  }
  return createNativeCore({ ...where, ...parts, ...more })
}

/** Send `text` and read until there is enough, or the end, or a reset. */
async function ask(port: number, text: string, enough: (all: string) => boolean): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1').on('error', () => {})
  socket.write(text)
  let all = ''
  socket.on('data', (piece: string) => {
    all += piece
    if (enough(all)) socket.destroy()
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return all
}

const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: a\r\nX-It: ${target}\r\n\r\n`
const bodies = (all: string): string[] =>
  all
    .split('\r\n\r\n')
    .slice(1)
    .map((part) => part.split('HTTP/1.1')[0])

test('a platform whose native core has no HTTP server is refused by name', () => {
  const build = { httpOpen: undefined }
  assert.throws(() => createNativeCore({} as CoreSettings, build), { code: 'NATIVE_HTTP_MISSING' })
})

test('responses out of order are sent in the order of their requests', async () => {
  const waiting: Exchange[] = []
  const core = coreOf((exchange) => {
    exchange.retain()
    waiting.push(exchange)
    if (waiting.length < 4) return
    for (const one of waiting.reverse()) setImmediate(() => one.respond(200, 1, '', `${one.header('x-it')}.`))
  })
  const { port } = await core.listen()
  const all = await ask(port, ['/a', '/b', '/c', '/d'].map(get).join(''), (text) => text.includes('/d.'))
  assert.deepEqual(bodies(all), ['/a.', '/b.', '/c.', '/d.'])
  await core.stop(100)
})

test('what a handler throws is a fault, and cuts its connection alone', async () => {
  const faults: unknown[] = []
  const core = coreOf(
    (exchange) => {
      if (exchange.target === '/bad') throw new Error('planted')
      exchange.respond(200, 1, '', 'ok.')
    },
    { onFault: (error) => faults.push(error) },
  )
  const { port } = await core.listen()
  assert.equal(await ask(port, get('/bad'), () => false), '')
  assert.deepEqual(bodies(await ask(port, get('/'), (text) => text.endsWith('ok.'))), ['ok.'])
  assert.equal((faults[0] as Error).message, 'planted')
  await core.stop(100)
})

test('a key that rustls refuses is named by its option, and nothing listens', async () => {
  const tls = readTls(parseTls(SERVER, 'serve()'))
  const bad = { ...tls.certificates[0], key: Uint8Array.of(1) }
  const refused = coreOf(() => {}, { tls: { ...tls, certificates: [bad] } })
  await assert.rejects(refused.listen(), { code: 'HTTP_TLS_KEY' })
  const faults: unknown[] = []
  const sni = async (name: string) => {
    if (name === 'throws.example') throw new Error('planted')
    return bad
  }
  const core = coreOf((exchange) => exchange.respond(200, 1, '', 'ok.'), {
    tls: { ...tls, sni },
    onFault: (error) => faults.push(error),
  })
  const { port } = await core.listen()
  assert.equal(await isRefused(port, { servername: 'bad.example' }), true)
  const more = { servername: 'throws.example', checkServerIdentity: () => undefined }
  assert.equal((await request(port, '/', more)).body, 'ok.')
  const [first, second] = faults as { code?: string; message: string }[]
  assert.deepEqual([first?.code, second?.message, faults.length], ['HTTP_TLS_KEY', 'planted', 2])
  await core.stop(100)
  core.setTls(tls) // too late, and no error
})

test('a client that goes ends its stream', async () => {
  let onAbort: () => void
  const aborted = new Promise<void>((resolve) => (onAbort = resolve))
  const core = coreOf((exchange) => {
    exchange.onAbort = onAbort
    exchange.start(200, 1, '', undefined)
    exchange.write(new Uint8Array([120]))
  })
  const { port } = await core.listen()
  assert.match(await ask(port, get('/'), (text) => text.endsWith('1\r\nx\r\n')), /transfer-encoding: chunked/)
  await aborted
  await core.stop(0)
  assert.equal(core.stats().aborted, 1)
})

test('a request whose connection closed in its own batch keeps its own headers', async () => {
  // As after a batch of one request; a reset and a read may arrive in either order.
  const link = new NativeLink(LIMITS, HUB, () => assert.fail())
  const put = (who: string): void => {
    const head = `GET /a HTTP/1.1\r\nAuthorization: ${who}\r\n\r\n`
    const start = WORDS_BYTES
    const name = start + head.indexOf('Authorization')
    link.bytes.set(Buffer.from(head), start)
    const end = start + head.length
    const words = [1, 3, 7, 1, NO_TARGET, start, 3, start + 4, 2, 1, 0, 0, end, 0, head.length]
    link.words.set([...words, name, 13 | (who.length << 16), name + 15], 16)
  }
  put('mine')
  const exchange = new NativeExchange(link, 16)
  let aborts = 0
  exchange.onAbort = () => (aborts += 1)
  exchange.retain()
  exchange.onClosed()
  await new Promise((resolve) => setImmediate(resolve))
  put('evil')
  assert.deepEqual([exchange.aborted, aborts, exchange.header('authorization')], [true, 1, 'mine'])
})

test('a request behind an empty line keeps fields without a value', async () => {
  const core = coreOf((exchange) => {
    exchange.retain()
    setTimeout(() => {
      try {
        exchange.respond(200, 1, '', `${JSON.stringify(exchange.headerPairs())}.`)
      } catch (error) {
        exchange.respond(500, 1, '', `${String(error)}.`)
      }
    }, 5)
  })
  const { port } = await core.listen()
  const text = '\r\nGET / HTTP/1.1\r\nHost: x\r\nX-E:\r\n\r\n'
  assert.deepEqual(bodies(await ask(port, text, (all) => all.endsWith('.'))), ['["Host","x","X-E",""].'])
  await core.stop(100)
})

test('an uncaught error that ends the ticks of a batch leaves each request its own bytes', async () => {
  const errors: unknown[] = []
  process.setUncaughtExceptionCaptureCallback((error) => errors.push(error))
  const core = coreOf((exchange) => {
    if (errors.length === 0) {
      process.nextTick(() => {
        throw new Error('planted')
      })
    }
    setImmediate(() => {
      const body = Buffer.from(exchange.bodyNow() ?? []).toString('latin1')
      exchange.respond(200, 1, '', `${exchange.header('x-it')} ${body.slice(0, 3)}.`)
    })
  })
  try {
    const { port } = await core.listen()
    const names = Array.from({ length: 60 }, (_, index) => `/${String(index).padStart(2, '0')}`)
    // More than one batch has room for, in one turn.
    const post = (name: string): string =>
      `POST ${name} HTTP/1.1\r\nHost: a\r\nX-It: ${name}\r\nContent-Length: 9000\r\n\r\n` +
      name.padEnd(9000, '-')
    const all = await Promise.all(names.map((name) => ask(port, post(name), (text) => text.endsWith('.'))))
    assert.deepEqual(
      all.map(bodies),
      names.map((name) => [`${name} ${name}.`]),
    )
    assert.ok(errors.length > 0)
  } finally {
    process.setUncaughtExceptionCaptureCallback(null)
    await core.stop(100)
  }
})

test('a slow reader makes writers wait, and they go on when it reads', async () => {
  const core = coreOf((exchange) => {
    void (async () => {
      exchange.start(200, 4, '', undefined)
      let waits = 0
      for (let left = 200; left > 0; left--) {
        if (exchange.write(new Uint8Array(60_000))) continue
        waits += 1
        await exchange.drained()
      }
      exchange.write(Buffer.from(waits > 0 ? 'waited' : 'did not wait'))
      exchange.end()
    })()
  })
  const { port } = await core.listen()
  const bytes = 200 * 60_000
  const all = await ask(port, get('/'), (text) => text.length > bytes && text.endsWith('0\r\n\r\n'))
  assert.ok(all.length > bytes && all.includes('\r\nwaited\r\n'))
  await core.stop(100)
})

test('a port that is taken is an error by name', async () => {
  const first = coreOf((exchange) => exchange.respond(200, 0, '', undefined))
  const { port } = await first.listen()
  await assert.rejects(coreOf(() => {}, { port }).listen(), { code: 'EADDRINUSE' })
  await assert.rejects(coreOf(() => {}, { port, reusePort: true }).listen(), { code: 'EADDRINUSE' })
  await first.stop(100)
})

const WORKER = `
  const { workerData, parentPort } = await import('node:worker_threads')
  const { createNativeCore } = await import(workerData.module)
  const core = createNativeCore({
    ...workerData.settings,
    onExchange: (exchange) => {
      if (exchange.target === '/spin') for (;;);
      if (exchange.target !== '/wait') exchange.respond(200, 1, '', 'worker.')
    },
    onFault: () => {},
  })
  parentPort.postMessage((await core.listen()).port)
`

test('a worker that is terminated in the middle of a request leaves the port to the others', async () => {
  const settings = { host: '127.0.0.1', unixPath: undefined, reusePort: true, limits: LIMITS }
  const core = coreOf((exchange) => exchange.respond(200, 1, '', 'main.'), { reusePort: true })
  const { port } = await core.listen()
  for (const target of ['/wait', '/spin', '/']) {
    const module = new URL('./core.js', import.meta.url).href
    const workerData = { module, settings: { ...settings, port, constants: [] } }
    const code = new URL(`data:text/javascript,${encodeURIComponent(WORKER)}`)
    const worker = new Worker(code, { workerData })
    await once(worker, 'message')
    // Some of these reach the worker and wait, block it or get a response; the others reach this thread.
    const asked = Array.from({ length: 8 }, () => ask(port, get(target), (text) => text.endsWith('.')))
    const other = Array.from({ length: 8 }, () => ask(port, get('/'), (text) => text.endsWith('.')))
    await Promise.race([...asked, ...other])
    await worker.terminate()
    await Promise.all([...asked, ...other])
    assert.deepEqual(bodies(await ask(port, get('/'), (text) => text.endsWith('.'))), ['main.'])
  }
  await core.stop(100)
})
