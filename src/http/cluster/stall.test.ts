/**
 * Workers that do not return to their event loops: the others accept what the kernel queues for them, they
 * are replaced in time, and they keep nobody from stopping.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import { test } from 'node:test'
import { type Zone, zone } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import type { ZoneServer } from './server.ts'
import type { StallEvent } from './supervisor.ts'

const APP = new URL('./app.test.support.js', import.meta.url)
const FOREVER_MS = 600_000
let zones = 0

interface Stuck {
  readonly server: ZoneServer
  readonly own: Zone
  readonly messages: readonly StallEvent[]
}

/** A server of two workers, so many of which are stuck in a handler when the body begins. */
function withStuck(
  name: string,
  given: { readonly stuck: number; readonly handlerMsMax: number },
  body: (stuck: Stuck) => Promise<void>,
): void {
  test(name, { timeout: 120_000 }, async () => {
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
      const late = Date.now() + 60_000
      while (Atomics.load(begun, 0) < most) {
        assert.ok(Date.now() < late, 'the handlers were not called')
        get(server, '/spins').catch(() => {})
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      await body({ server, own, messages })
    } finally {
      unsubscribe('corespun:http:stall', onStall)
      await server.close({ timeoutMs: 0 }).catch(() => {})
      await own.close()
    }
  })
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
  async ({ server, messages, own }) => {
    // Those of the first wave wait in its queue until the stall is seen.
    for (let waves = 0; waves < 4; waves += 1) await wave(server)
    const { stalls, replacements, workers } = await server.stats()
    assert.deepEqual([stalls, replacements, workers], [1, 0, 2])
    const { worker, url, stalledMs, isReplaced } = messages[0]
    assert.deepEqual([messages.length, url, isReplaced], [1, server.url, false])
    assert.ok(stalledMs >= 1000 && worker.startsWith(`${own.id}/`), `${worker}, ${stalledMs} ms`)
  },
)

withStuck(
  'when all workers are stalled, they are replaced and the port serves again',
  { stuck: 2, handlerMsMax: 1500 },
  async ({ server, messages }) => {
    await wave(server)
    const late = Date.now() + 60_000
    let stats = await server.stats()
    while (stats.replacements < 2) {
      assert.ok(Date.now() < late, `${stats.replacements} of 2 are replaced`)
      await get(server, '/')
      stats = await server.stats()
    }
    const replaced = messages.filter(({ isReplaced }) => isReplaced)
    assert.equal(new Set(replaced.map(({ worker }) => worker)).size, 2)
    const threads = new Set<string>()
    while (threads.size < 2) {
      assert.ok(Date.now() < late, 'one worker does not serve again')
      threads.add(await get(server, '/'))
    }
    await wave(server)
  },
)

test('connections that wait for a worker that exits are accepted by the others', async () => {
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
    const late = Date.now() + 60_000
    while (Atomics.load(words, 0) === 0) {
      assert.ok(Date.now() < late, 'the handler was not called')
      await new Promise((resolve) => setImmediate(resolve))
    }
    const responses = wave(server)
    const { connectionsTotal } = await server.stats()
    assert.ok(connectionsTotal < 40, 'some wait in the queue of the worker that does not return')
    Atomics.store(words, 1, 1)
    Atomics.notify(words, 1)
    await Promise.all([ended, responses])
  } finally {
    Atomics.store(words, 1, 1)
    Atomics.notify(words, 1)
    await server.close({ timeoutMs: 0 }).catch(() => {})
    await own.close()
  }
})

withStuck(
  'stopping waits for a stuck worker until it is replaced',
  { stuck: 1, handlerMsMax: 2500 },
  async ({ server }) => {
    await wave(server)
    // Less than the time for which the last one would be left its sockets if nobody had asked it to stop.
    await server.close({ timeoutMs: 20_000 })
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
  { stuck: 1, handlerMsMax: 3000 },
  async ({ server, messages }) => {
    await assert.rejects(server.close({ timeoutMs: 10 }), { code: 'HTTP_CLOSE_TIMEOUT' })
    const late = Date.now() + 60_000
    while (!messages.some(({ isReplaced }) => isReplaced)) {
      assert.ok(Date.now() < late, 'the stuck worker is not ended')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  },
)
