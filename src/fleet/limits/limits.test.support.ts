/**
 * What rate limits over machines promise, as tests that run on any engine, with the workers of a zone.
 *
 * The other machine has a connection and counts of its own here.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { serve } from '../../http/index.ts'
import { SharedCounts } from '../../http/middleware/internal.ts'
import { zone } from '../../zone/index.ts'
import type { Fleet } from '../connect.ts'
import { Exchange } from './exchange.ts'

/** With a limit of 8 requests, named `zone`. */
const APP = new URL('../../http/cluster/app.test.support.js', import.meta.url)
const RATE = [8, 2 ** 30] as const
const KEY = `${RATE.join('/')} "all" k`

/** The tests, with connections of that kind. */
export function limitTests(kind: string, connect: () => Promise<Fleet>): void {
  test(`${kind}: the workers of a zone and another machine have one limit`, async (t) => {
    const [far, again, others] = [await connect(), await connect(), await connect()]
    const web = zone.create(`limits-${kind}`, { workers: 2 })
    const counts = new SharedCounts('zone, elsewhere')
    const log = { isLinked: true, sent: 0, received: 0, missed: 0 }
    const exchange = new Exchange(others.engine.messages!, 'zone', counts, log, 10)
    const server = await serve({ zone: web, app: APP, appExport: 'sharedLimit', port: 0, quiet: true })
    t.after(async () => {
      await server.close()
      await Promise.all([web.close(), far.close(), again.close(), others.close()])
    })
    await exchange.begin()
    const limits = await far.limits('zone').join({ intervalMs: 10 })
    // As where each worker joins: what arrives at both counts once.
    const twice = await again.limits('zone').join({ intervalMs: 10 })
    const sum = (of: 'sent' | 'received'): number => limits.stats()[of] + twice.stats()[of]
    const ask = async (): Promise<number> =>
      (await fetch(server.url, { headers: { connection: 'close' } })).status
    const statuses = await Promise.all([ask(), ask(), ask(), ask(), ask()])
    assert.deepEqual(statuses, [200, 200, 200, 200, 200])
    await until(() => log.received === 5)
    assert.deepEqual([counts.take(KEY, ...RATE).left, counts.take(KEY, ...RATE).left], [2, 1])
    await until(() => sum('received') === 2)
    assert.deepEqual([await ask(), await ask()], [200, 429])
    await until(() => log.received === 6)
    assert.equal(counts.take(KEY, ...RATE).allowed, false)
    await exchange.leave()
    await limits.leave()
    await twice.leave()
    assert.deepEqual([sum('sent'), sum('received'), limits.stats().missed], [6, 2, 0])
  })
}
