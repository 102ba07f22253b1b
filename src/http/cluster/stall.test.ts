/**
 * Workers that do not return to their event loops: the others accept what the kernel queues for them, they
 * are replaced in time, and they keep nobody from stopping.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import { test } from 'node:test'
import { cellIsSet, settled, until, WAIT_MS_MAX } from '../../base/wait.test.support.ts'
import { type Zone, zone } from '../../zone/index.ts'
import { connect, readResponses } from '../raw.test.support.ts'
import { serve } from '../serve.ts'
import type { ZoneServer } from './cluster-server.ts'
import type { StallEvent } from './supervisor.ts'

const APP = new URL('./app.test.support.js', import.meta.url)
const FOREVER_MS = 600_000
let zones = 0

interface Stuck {
  readonly server: ZoneServer
  readonly own: Zone
  readonly messages: readonly StallEvent[]
}

/** A server of two workers, `stuck` of which are stuck in a handler when the body begins. */
function withStuck(
  name: string,
  given: { readonly stuck: number; readonly handlerMsMax: number },
  body: (stuck: Stuck) => Promise<void>,
): void {
  test(name, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const own = zone.create(`http stall ${(zones += 1)}`, { workers: 2, closeMs: 0 })
    const messages: StallEvent[] = []
    const onStall = (message: unknown): void => void messages.push(message as StallEvent)
    subscribe('corespun:http:stall', onStall)
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const { handlerMsMax, stuck: most } = given
    const app = { app: APP, appExport: 'spinning', appArgs: [{ begun, most }] }
    const server = await serve({ quiet: true, zone: own, ...app, core: 'native', port: 0, handlerMsMax })
    try {
      // Those that the kernel queues for one that is stuck already wait; the number that get through counts.
      await until(() => {
        if (Atomics.load(begun, 0) < most) get(server, '/spins').catch(() => {})
        return Atomics.load(begun, 0) >= most
      }, `${most} handlers that do not return`)
      await body({ server, own, messages })
    } finally {
      unsubscribe('corespun:http:stall', onStall)
      await closeBoth(server, own)
    }
  })
}

/** Closes the zone at once, so that nothing waits for its stuck workers. */
async function closeBoth(server: ZoneServer, own: Zone): Promise<void> {
  const closed = server.close({ timeoutMs: 0 }).catch(() => {})
  await own.close()
  await closed
}

/** The response on a connection of its own. */
function get({ url }: ZoneServer, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get(`${url}${path}`, { agent: false, timeout: 60_000 }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve(text)).on('error', reject)
    })
    request.on('error', reject).on('timeout', () => request.destroy(new Error('no response in a minute')))
  })
}

async function wave(server: ZoneServer): Promise<void> {
  const responses = await Promise.all(Array.from({ length: 40 }, () => get(server, '/constant')))
  assert.deepEqual(new Set(responses), new Set(['constant']))
}

withStuck(
  'new connections beside a stalled worker all get responses',
  { stuck: 1, handlerMsMax: FOREVER_MS },
  async ({ server, messages }) => {
    // Those of the first wave wait in its queue until the stall is seen.
    for (let waves = 0; waves < 4; waves += 1) await wave(server)
    // The stuck worker reports no request.
    let stats = await server.stats()
    const silent = (): string[] =>
      stats.byWorker.filter(({ requests }) => requests === 0).map(({ worker }) => worker)
    await until(async () => {
      stats = await server.stats()
      return silent().length === 1
    }, 'a report of the worker that serves')
    // That one counts as stalled too if it had no core for a second.
    assert.deepEqual([stats.stalls, stats.replacements, stats.workers], [messages.length, 0, 2])
    const ofStuck = messages.filter(({ worker }) => worker === silent()[0])
    assert.equal(ofStuck.length, 1, JSON.stringify(messages))
    const { url, stalledMs, isReplaced } = ofStuck[0]
    assert.deepEqual([url, isReplaced], [server.url, false])
    assert.ok(stalledMs >= 1000, `${stalledMs} ms`)
  },
)

withStuck(
  'when all workers are stalled, they are replaced and the port serves again',
  { stuck: 2, handlerMsMax: 1500 },
  async ({ server, messages }) => {
    await wave(server)
    await until(async () => {
      await get(server, '/')
      return (await server.stats()).replacements >= 2
    }, 'the replacement of both workers')
    const replaced = messages.filter(({ isReplaced }) => isReplaced)
    assert.equal(new Set(replaced.map(({ worker }) => worker)).size, 2)
    const threads = new Set<string>()
    await until(async () => threads.add(await get(server, '/')).size === 2, 'responses of both workers')
    await wave(server)
  },
)

test('connections that wait for a worker that exits are accepted by the others', async (t) => {
  // Nothing finds the worker stalled, so its queue keeps its connections until it exits.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const own = zone.create(`http stall ${(zones += 1)}`, { workers: 2, closeMs: 0 })
  const words = new Int32Array(new SharedArrayBuffer(8))
  const app = { app: APP, appExport: 'exiting', appArgs: [{ words }] }
  const server = await serve({
    quiet: true,
    zone: own,
    ...app,
    core: 'native',
    port: 0,
    handlerMsMax: FOREVER_MS,
  })
  try {
    const ended = assert.rejects(get(server, '/exits'), { code: 'ECONNRESET' })
    await cellIsSet(words, 0, 'the handler that does not return')
    // Accepted by the kernel: each is in the queue of one of the workers, or that one has accepted it.
    const sockets = await Promise.all(Array.from({ length: 40 }, () => connect(server.port)))
    const responses = sockets.map(async (socket) => {
      socket.setEncoding('latin1').write('GET /constant HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      const text = (await socket.toArray()).join('')
      socket.destroy()
      return text
    })
    Atomics.store(words, 1, 1)
    Atomics.notify(words, 1)
    await settled(ended, 'the end of the connection of the worker that exits')
    for (const text of await settled(Promise.all(responses), 'the responses of the other worker'))
      assert.equal(readResponses(text, [], true).responses[0]?.body, 'constant')
  } finally {
    t.mock.timers.reset()
    Atomics.store(words, 1, 1)
    Atomics.notify(words, 1)
    await closeBoth(server, own)
  }
})

withStuck(
  'stopping waits for a stuck worker until it is replaced',
  { stuck: 1, handlerMsMax: 2500 },
  async ({ server }) => {
    await wave(server)
    // Less than the time for which the last one would be left its sockets if nobody had asked it to stop.
    await server.close({ timeoutMs: 60_000 })
    await assert.rejects(get(server, '/constant'), { code: 'ECONNREFUSED' })
    assert.equal((await server.stats()).workers, 0)
  },
)

withStuck(
  'a server that could not wait for a stuck worker has closed its port',
  { stuck: 1, handlerMsMax: FOREVER_MS },
  async ({ server }) => {
    await assert.rejects(server.close({ timeoutMs: 10 }), { code: 'HTTP_CLOSE_TIMEOUT' })
    await assert.rejects(get(server, '/constant'), { code: 'ECONNREFUSED' })
  },
)

withStuck(
  'a worker that kept the server from stopping is ended after handlerMsMax all the same',
  { stuck: 1, handlerMsMax: 10_000 },
  async ({ server, messages }) => {
    await assert.rejects(server.close({ timeoutMs: 10 }), { code: 'HTTP_CLOSE_TIMEOUT' })
    await until(() => messages.some(({ isReplaced }) => isReplaced), 'the end of the stuck worker')
  },
)
