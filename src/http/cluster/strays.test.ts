/**
 * Errors that nobody catches, in workers that serve: each request is responded to or fails by its own doing
 * alone, whatever other requests leave behind, is logged once as it was received, and each error is reported
 * once.
 *
 * Mixes of requests follow from seeds. A failing one is in the name of the failure: CORESPUN_SEED runs it
 * alone, CORESPUN_SEEDS=100 plays 100 instead of 2.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { BroadcastChannel } from 'node:worker_threads'
import { until, WAIT_MS_MAX } from '../../base/wait.test.support.ts'
import { zone } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import { RawClient } from '../websocket/client.test.support.ts'
import { EXPECTED, LOG } from './strays.test.support.ts'
import type { ZoneServer } from './cluster-server.ts'

const APP = new URL('./strays.test.support.js', import.meta.url)
const REQUESTS = 60
const PATHS = Object.keys(EXPECTED)

const { CORESPUN_SEED: one, CORESPUN_SEEDS: most = '2' } = process.env
const SEEDS = one === undefined ? Array.from({ length: Number(most) }, (_, at) => at + 1) : [Number(one)]

/** Numbers from 0 on below `bound`, which follow from a seed (xorshift). */
function generator(seed: number): (bound: number) => number {
  let state = (seed * 2_654_435_761) | 1
  return (bound) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % bound
  }
}

interface Received {
  readonly path: string
  readonly status: number
  readonly body: string
}

/** A request on a connection of its own: what it receives, or the error's code as the body. */
function get(url: string, path: string): Promise<Received> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => resolve({ path, status: 0, body: `${error.code}` })
    const request = http.get(url + path, { agent: false }, (response) => {
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', (piece: string) => (body += piece))
        .on('end', () => resolve({ path, status: response.statusCode!, body }))
        .on('error', failed)
    })
    request.on('error', failed)
  })
}

/** A server, and the messages of errors that were reported. */
async function inServer(
  workers: number,
  body: (server: ZoneServer, reported: string[]) => Promise<void>,
  closeMs = WAIT_MS_MAX,
): Promise<void> {
  const own = zone.create('strays', { workers, closeMs: 0 })
  const reported: string[] = []
  own.onError((error) => void reported.push((error as Error).message))
  const server = await serve({ zone: own, app: APP, port: 0, core: 'native', closeMs, quiet: true })
  try {
    await body(server, reported)
  } finally {
    await server.close({ timeoutMs: 0 })
    await own.close()
  }
}

/** Leave errors behind until all workers are others: those follow their requests. */
async function replaceAll(server: ZoneServer, reported: string[], workers: number): Promise<void> {
  const threads = async (): Promise<string> => (await get(server.url, '/thread')).body
  const first = new Set<string>()
  while (first.size < workers) first.add(await threads())
  let strays = 0
  for (let others = 0; others < 8 * workers;) {
    others = first.has(await threads()) ? 0 : others + 1
    if (others > 0) continue
    assert.equal((await get(server.url, '/rejection')).status, 200)
    strays += 1
    await until(() => reported.length === strays, 'the report of each error')
  }
  reported.length = 0
}

for (const seed of SEEDS) {
  const workers = 1 + (seed % 2)
  test(`seed ${seed}, with ${workers} workers`, { timeout: 4 * WAIT_MS_MAX }, () =>
    inServer(workers, async (server, reported) => {
      await replaceAll(server, reported, workers)
      const next = generator(seed)
      const logged: string[] = []
      const channel = new BroadcastChannel(LOG)
      channel.addEventListener('message', (event) => logged.push((event as unknown as { data: string }).data))
      const paths = Array.from({ length: REQUESTS }, () => PATHS[next(PATHS.length)])
      const received: Promise<Received>[] = []
      for (const path of paths) {
        received.push(get(server.url, path))
        for (let turns = next(8); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
      }
      const expected = paths.map((path) => {
        const { status, body } = EXPECTED[path]
        return { path, status, body }
      })
      assert.deepEqual(await Promise.all(received), expected, `CORESPUN_SEED=${seed}`)
      const strays = paths.filter((path) => EXPECTED[path].strays).length
      await until(() => reported.length >= strays, `${strays} reports of errors, CORESPUN_SEED=${seed}`)
      assert.equal(reported.length, strays)
      await until(() => logged.length >= paths.length, `${paths.length} records, CORESPUN_SEED=${seed}`)
      channel.close()
      const records = expected.map(({ path, status, body }) => `${path} ${status} ${body.length}`)
      assert.deepEqual(logged.sort(), records.sort(), `CORESPUN_SEED=${seed}`)
    }),
  )
}

test('counts are complete while workers are replaced', { timeout: 2 * WAIT_MS_MAX }, () =>
  inServer(2, async (server, reported) => {
    for (let round = 1; round <= 6; round++) {
      await Promise.all(['/rejection', '/slow', '/plain'].map((path) => get(server.url, path)))
      await until(() => reported.length === round)
    }
    await server.close()
    const { requests, workers, cut } = await server.stats()
    assert.deepEqual([requests, workers, cut], [18, 0, 0])
  }),
)

test('what would never end is closed with the worker, within closeMs', { timeout: 2 * WAIT_MS_MAX }, () =>
  inServer(
    1,
    async (server) => {
      const { socket } = await RawClient.open(server.port, { path: '/socket' })
      const [response] = (await once(http.get(`${server.url}/events`, { agent: false }), 'response')) as [
        http.IncomingMessage,
      ]
      const closed = new Promise((resolve) =>
        response
          .resume()
          .on('error', () => {})
          .on('close', resolve),
      )
      const ended = Promise.all([once(socket, 'end'), closed])
      const thread = await get(server.url, '/thread')
      assert.equal((await get(server.url, '/timer')).body, 'timer')
      await ended
      socket.destroy() // It is half open until its own side ends, too.
      await until(async () => (await get(server.url, '/thread')).body !== thread.body)
    },
    100,
  ),
)
