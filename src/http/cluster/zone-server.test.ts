/**
 * `serve({zone})`: one port for all workers, deaths that cost only the requests of the dead, an end that
 * finishes what was accepted, and one clear error for whatever keeps it from serving.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { BroadcastChannel } from 'node:worker_threads'
import { share } from '../../base/part.test.support.ts'
import { settled, until, WAIT_MS_MAX } from '../../base/wait.test.support.ts'
import { type Zone, zone, type ZoneOptions } from '../../zone/index.ts'
import { connect } from '../raw.test.support.ts'
import { serve } from '../serve.ts'
import { Board } from './board.ts'
import type { WorkerMessage } from './protocol.ts'
import { RoomRelay } from './rooms.ts'
import { ZoneServer } from './cluster-server.ts'
import type { ZoneServeOptions } from './cluster-settings.ts'

const APP = new URL('./app.test.support.js', import.meta.url)
let zones = 0

/** A test with a zone of its own. */
function inZone(
  name: string,
  workers: number,
  body: (start: (settings?: Partial<ZoneServeOptions>) => Promise<ZoneServer>, zone: Zone) => Promise<void>,
  settings: ZoneOptions = {},
): void {
  test(name, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const servers: ZoneServer[] = []
    const own = zone.create(`http ${(zones += 1)}`, {
      workers,
      closeMs: 0,
      ...settings,
    })
    try {
      await body(async (given = {}) => {
        const server = await serve({
          quiet: true,
          zone: own,
          app: APP,
          core: 'native',
          host: '127.0.0.1',
          port: 0,
          ...given,
        })
        servers.push(server)
        return server
      }, own)
    } finally {
      await Promise.allSettled(servers.map((server) => server.close({ timeoutMs: 0 })))
      await own.close()
    }
  })
}

/** The text of one response on a connection of its own; rejects without one. */
function get(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent: false }, (response) => {
      let text = ''
      response
        .setEncoding('utf8')
        .on('data', (piece: string) => (text += piece))
        .on('end', () => resolve(text))
        .on('error', reject)
    })
    request.on('error', reject)
  })
}

/** The threads that respond. */
async function threads(url: string, count: number): Promise<Set<string>> {
  const found = new Set<string>()
  await until(async () => {
    const thread = await get(url).catch(() => undefined)
    if (thread !== undefined) found.add(thread)
    return found.size >= count
  }, `responses of ${count} threads`)
  return found
}

inZone('every worker serves the same port', 3, async (start) => {
  const server = await start()
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.equal((await threads(server.url, 3)).size, 3)
  assert.equal(await get(`${server.url}/constant`), 'constant')
})

inZone('counts are those of all workers together', 2, async (start, { id }) => {
  const server = await start()
  await threads(server.url, 2)
  const before = (await server.stats()).requests
  for (let asked = 0; asked < 50; asked += 1) await get(`${server.url}/constant`)
  await get(`${server.url}/fails`)
  const stats = await server.stats()
  assert.equal(stats.requests - before, 51)
  assert.deepEqual([stats.workers, stats.errors], [2, 1])
  assert.deepEqual(stats.byWorker.map(({ worker }) => worker).sort(), [`${id}/0`, `${id}/1`])
  assert.equal(
    stats.byWorker.reduce((sum, { requests }) => sum + requests, 0),
    stats.requests,
  )
  await server.close()
  assert.equal((await server.stats()).requests, stats.requests)
  assert.equal((await server.stats()).workers, 0)
})

for (const end of ['dies', 'throws']) {
  inZone(`a worker that ${end} is replaced, and the others lose nothing`, 3, async (start, own) => {
    const server = await start()
    const first = await threads(server.url, 3)
    const kept = await Promise.all(Array.from({ length: 24 }, () => openSlow(server.port)))
    await get(`${server.url}/${end}`).catch(() => {}) // its own response may be lost with it
    // Those on other workers get responses; at most a share of them was on the one that ended.
    const responses = await Promise.all(kept)
    const responded = responses.filter((text) => text.endsWith('slow')).length
    assert.ok(responded >= 1, `${responded} of ${responses.length}`)
    await until(
      async () => [...(await threads(server.url, 3))].some((thread) => !first.has(thread)),
      'a response of the worker that replaces it',
    )
    const stats = await server.stats()
    assert.deepEqual([stats.workers, own.stats().workers], [3, 3])
  })
}

/** A request on a connection of its own whose response takes a while. */
async function openSlow(port: number): Promise<string> {
  const socket = await connect(port)
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await new Promise((over) => socket.once('end', over).once('close', over))
  socket.destroy()
  return text
}

inZone(
  'when workers die one after the other, no connection is refused and only their own responses are lost',
  2,
  async (start) => {
    const server = await start()
    let isOver = false
    const lost: string[] = []
    const client = async (): Promise<void> => {
      while (!isOver) await get(server.url).catch((error: NodeJS.ErrnoException) => lost.push(error.code!))
    }
    const clients = Array.from({ length: 4 }, client)
    for (let death = 1; death <= share(8); death += 1) {
      await get(`${server.url}/dies`).catch(() => {})
      assert.equal((await threads(server.url, 2)).size, 2, `worker ${death} was not replaced`)
      assert.ok(lost.length <= death * clients.length, `${lost.length} responses lost with ${death} workers`)
    }
    isOver = true
    await Promise.all(clients)
    assert.deepEqual(
      lost.filter((code) => code !== 'ECONNRESET'),
      [],
    )
    assert.ok((await server.stats()).requests > 0)
  },
)

inZone('stopping finishes what was accepted and takes nothing more', 2, async (start) => {
  const server = await start()
  const slow = Array.from({ length: 8 }, () => openSlow(server.port))
  await until(async () => (await server.stats()).requests === slow.length, 'all slow requests')
  const stopped = server.close({ timeoutMs: 60_000 })
  assert.equal(server.close(), stopped)
  await stopped
  for (const text of await Promise.all(slow)) assert.match(text, /slow$/)
  await assert.rejects(get(server.url))
})

inZone('what is not finished within timeoutMs is cut', 2, async (start) => {
  const server = await start()
  const never = get(`${server.url}/never`)
  never.catch(() => {})
  await until(async () => (await server.stats()).requests === 1, 'the request')
  await settled(server.close({ timeoutMs: 50 }), 'the end of a server whose handler never responds')
  await assert.rejects(never)
})

inZone(
  'a worker that does not return to its loop is an error by name, not a hang',
  1,
  async (start, { id }) => {
    const server = await start()
    const folder = mkdtempSync(join(tmpdir(), 'corespun-spins-'))
    const begun = join(folder, 'begun')
    get(`${server.url}/spins?${encodeURIComponent(begun)}`).catch(() => {})
    await until(() => existsSync(begun))
    rmSync(folder, { recursive: true })
    await assert.rejects(server.close({ timeoutMs: 20 }), {
      code: 'HTTP_CLOSE_TIMEOUT',
      message:
        `${id}/0 did not close within 20 ms: busy with something else; ` +
        'move long work from handlers to a zone, or raise timeoutMs',
    })
  },
)

inZone('a task that runs meanwhile does not keep it from stopping', 1, async (start, own) => {
  const server = await start()
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const task = own.run(async (cell: Int32Array) => {
    while (Atomics.load(cell, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    return 'done'
  }, gate)
  assert.match(await get(server.url), /^\d+$/)
  await settled(server.close({ timeoutMs: 60_000 }), 'the end of a server beside a task')
  Atomics.store(gate, 0, 1)
  assert.equal(await task, 'done')
})

inZone('a server that was stopped does not come back in a worker that is replaced', 1, async (start, own) => {
  const server = await start()
  await server.close()
  await assert.rejects(
    own.run(() => process.exit(1)),
    { code: 'WORKER_DIED' },
  )
  await own.run(() => 1)
  await assert.rejects(get(server.url))
})

inZone(
  'several apps in one zone, by port; options of serve take precedence over those of the module',
  2,
  async (start) => {
    const [one, two] = await Promise.all([start(), start({ limits: { bodyBytesMax: 20 } })])
    assert.notEqual(one.port, two.port)
    const post = async ({ url }: ZoneServer): Promise<number> =>
      (await fetch(url, { method: 'POST', body: 'x'.repeat(15) })).status
    assert.deepEqual([await post(one), await post(two)], [413, 200])
    await one.close()
    assert.equal(await get(`${two.url}/constant`), 'constant')
  },
)

inZone('the port is to be had again', 2, async (start) => {
  const first = await start()
  await first.close()
  const second = await start({ port: first.port })
  assert.equal(second.port, first.port)
  await get(second.url)
})

const folder = mkdtempSync(join(tmpdir(), 'corespun-zone-server-'))
test.after(() => rmSync(folder, { recursive: true }))
const closed = join(folder, 'closed')
inZone(
  "the app's close is called in each worker",
  2,
  async (start) => {
    rmSync(closed, { force: true })
    const server = await start({ appExport: 'closes' })
    assert.equal(await get(server.url), 'closes')
    await server.close()
    assert.equal(readFileSync(closed, 'utf8').trim().split('\n').length, 2)
  },
  {
    env: {
      ...(process.env as Record<string, string>),
      CORESPUN_TEST_CLOSED: closed,
    },
  },
)

inZone("an error of an app's close is reported", 2, async (start) => {
  const server = await start({ appExport: 'fails' })
  await assert.rejects(server.close(), {
    code: 'HTTP_APP',
    message: /close\(\) failed: cannot close$/,
  })
})

inZone('an app can be made in each worker, from what is given', 2, async (start) => {
  const server = await start({
    appExport: 'make',
    appArgs: [{ response: 'made' }],
  })
  assert.equal(await get(server.url), 'made')
  await get(`${server.url}/dies`).catch(() => {})
  await until(async () => (await server.stats()).workers === 2, 'the replacement of a worker')
  for (let asked = 0; asked < 8; asked += 1) assert.equal(await get(server.url), 'made')
})

inZone('a zone that is closed takes its server with it', 1, async (start, own) => {
  const server = await start()
  const warned = once(process, 'warning')
  await own.close()
  const [warning] = (await warned) as [Error]
  assert.match(warning.message, /^no worker serves http:.* any more: the zone .* has no workers$/)
  await server.close()
  assert.equal((await server.stats()).workers, 0)
})

test('the adapter for node:http serves in a zone of one worker, and is refused in larger ones', async () => {
  const given = { app: APP, core: 'node', host: '127.0.0.1', port: 0 } as const
  const [one, two] = [zone.create('http node 1', { workers: 1 }), zone.create('http node 2', { workers: 2 })]
  await assert.rejects(serve({ ...given, zone: two }), {
    code: 'HTTP_ARGUMENT',
    message: /\bcore\b.*share a port/,
  })
  const server = await serve({ quiet: true, ...given, zone: one })
  assert.equal((await fetch(server.url)).status, 200)
  assert.equal((await server.stats()).core, 'node')
  await server.close({ timeoutMs: 0 })
  await Promise.all([one.close(), two.close()])
})

test('when all workers have failed, the reason is awaited and reported', async (t) => {
  const own = zone.create('http failed', { workers: 2 })
  await own.ready()
  t.mock.timers.enable({ apis: ['setInterval'] })
  const board = new Board()
  const listening = {
    url: 'http://nowhere',
    port: 0,
    sharedPort: 0,
    core: 'node',
    handlerMsMax: 1000,
    quiet: true,
  } as const
  const id = 'test.failed'
  let left = 0
  const joined = { send: () => {}, leave: async () => void left++ }
  const rooms = new RoomRelay(id, board, -1)
  const server = new ZoneServer({ zone: own, board, id, listening, rooms, joined, app: 'none', closeMs: 0 })
  board.run()
  for (const row of [0, 1]) board.setFailed(row)
  t.mock.timers.tick(10_000)
  const failure = 'the app is missing'
  const channel = new BroadcastChannel('test.failed')
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  channel.postMessage({ kind: 'failed', worker: `${own.id}/0`, failure } satisfies WorkerMessage)
  assert.equal(await server.ended, failure)
  assert.equal(left, 1)
  assert.ok(warnings.includes(`${own.id}/0 does not serve: ${failure}`), warnings.join())
  process.off('warning', onWarning)
  channel.close()
  await own.close()
})

inZone(
  'when replacements of dead workers cannot serve, the server reports it and ends',
  2,
  async (start, own) => {
    const seen = join(folder, `seen-${own.id}`)
    const app = join(folder, `once-${own.id}.mjs`)
    writeFileSync(
      app,
      `import { existsSync } from 'node:fs'
    if (existsSync(${JSON.stringify(seen)})) throw new Error('the app is missing')
    export default () => (setImmediate(() => process.exit(1)), new Response('leaving'))`,
    )
    const server = await start({ app: pathToFileURL(app) })
    writeFileSync(seen, '')
    let hasEnded = false
    void server.ended.then(() => (hasEnded = true))
    await until(async () => {
      await get(server.url).catch(() => {}) // ends a worker, as long as one serves
      return hasEnded
    }, 'the end of a server whose workers cannot serve')
    assert.match(await server.ended, /failed to load: the app is missing/)
    await server.close()
    assert.equal(await own.run(() => 'the zone goes on'), 'the zone goes on')
  },
)

inZone('a rate limit counts the requests of all workers together', 3, async (start, own) => {
  const requestsMax = 60
  const server = await start({ appExport: 'limited', appArgs: [{ name: own.id, requestsMax }] })
  const responses = await Promise.all(Array.from({ length: 2 * requestsMax }, () => get(server.url)))
  const passed = responses.filter((text) => /^\d+$/.test(text))
  assert.equal(passed.length, requestsMax)
  assert.ok(new Set(passed).size > 1, 'one worker handled all')
})

inZone('a taken port is an error, and nobody is left serving', 2, async (start) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  await assert.rejects(start({ port }), {
    name: 'HttpError',
    code: 'HTTP_PORT_TAKEN',
    facts: { where: `127.0.0.1:${port}` },
  })
  other.close()
  await once(other, 'close')
  assert.equal(await get(`${(await start({ port })).url}/constant`), 'constant')
})

inZone('an app that cannot be served is an error by name', 2, async (start) => {
  const named = (given: Partial<ZoneServeOptions>, expected: object): Promise<void> =>
    assert.rejects(start(given), { name: 'HttpError', ...expected })
  const missing = new URL('./not-there.js', import.meta.url)
  await named({ app: missing }, { code: 'HTTP_APP', message: /: failed to load: Cannot find module/ })
  const throws = new URL('data:text/javascript,throw new TypeError("at load")')
  await named({ app: throws }, { code: 'HTTP_APP', message: /: failed to load: TypeError: at load$/ })
  await named(
    { appExport: 'nothing' },
    {
      code: 'HTTP_APP',
      message: /: export "nothing" is not an app: .*; it exports /,
    },
  )
  await named(
    { appExport: 'wrong' },
    { code: 'HTTP_ARGUMENT', message: /^serve\(\): unknown option "prot"; did you mean "port"\?$/ },
  )
  await named({ appExport: 'missing' }, { code: 'HTTP_APP' })
  const none = /: export "nothing" is not a function that returns an app; it exports /
  await named({ appExport: 'nothing', appArgs: [] }, { code: 'HTTP_APP', message: none })
  const failed = /: the function that makes it failed: TypeError: /
  await named({ appExport: 'make', appArgs: [] }, { code: 'HTTP_APP', message: failed })
  await assert.rejects(start({ appExport: 'make', appArgs: [Symbol()] }), {
    name: 'TransportError',
  })
  await named({ host: 'no such host' }, { code: 'HTTP_ARGUMENT' })
})

test('invalid options are refused before any worker receives them', async () => {
  const own = zone.create('http refused', { workers: 1 })
  const cached = zone.create('http cached', { executor: 'cached' })
  const refused = async (given: object, name: string, code = 'HTTP_ARGUMENT'): Promise<void> => {
    await assert.rejects(
      serve({ zone: own, app: APP, ...given } as ZoneServeOptions),
      (error: { code: string; facts: { name?: string }; message: string }) => {
        assert.equal(error.code, code, error.message)
        if (code === 'HTTP_ARGUMENT') assert.equal(error.facts.name, `serve(): ${name}`)
        return true
      },
    )
  }
  await refused({ routes: {} }, 'routes')
  await refused({ fetch: () => 'x' }, 'fetch')
  await refused({ error: () => 'x' }, 'error')
  await refused({ reusePort: 1 }, 'reusePort')
  await refused({ prot: 1 }, 'prot')
  await refused({ port: -1 }, 'port')
  await refused({ closeMs: Number.NaN }, 'closeMs')
  await refused({ limits: { headersMs: 0 } }, 'limits.headersMs')
  await refused({ handlerMsMax: 999 }, 'handlerMsMax')
  await refused({ appExport: '' }, 'appExport')
  await refused({ appExport: 1 }, 'appExport')
  await refused({ appArgs: 'x' }, 'appArgs')
  await refused({ app: './relative.js' }, 'app')
  await refused({ app: undefined }, 'app')
  await refused({ app: 7 }, 'app')
  await refused({ zone: undefined }, 'zone')
  await refused({ zone: null }, 'zone')
  await refused({ zone: '' }, 'zone')
  await refused({ zone: 7 }, 'zone')
  await refused({ zone: {} }, 'zone')
  await refused({ zone: zone.node }, 'zone')
  await refused({ zone: cached }, 'zone')
  await refused({ zone: 'no such zone' }, '', 'ZONE_UNKNOWN')
  await own.close()
  await cached.close()
  await refused({}, '', 'ZONE_CLOSED')
})
