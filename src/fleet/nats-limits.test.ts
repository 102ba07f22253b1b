/**
 * Rate limits over NATS, at a server of its own, and what happens to them when it is killed.
 *
 * The tests themselves are in limits/limits.test.support.ts; without a server they are skipped.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../base/wait.test.support.ts'
import { SharedCounts } from '../http/middleware/internal.ts'
import { connect } from './connect.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { Exchange } from './limits/exchange.ts'
import { limitTests } from './limits/limits.test.support.ts'

if (SKIP !== false) test('nats: limits', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  limitTests('nats', async () => connect((await server).url))
}

test('nats: while a server is away each machine counts by itself', { skip: SKIP }, async () => {
  const first = await startServer()
  await using one = await connect(first.url)
  await using other = await connect(first.url)
  const limits = await one.limits('killed').join({ intervalMs: 10 })
  const [counts, others] = [new SharedCounts('killed'), new SharedCounts('killed, elsewhere')]
  const log = { isLinked: true, sent: 0, received: 0, missed: 0 }
  const exchange = new Exchange(other.engine.messages!, 'killed', others, log, 10)
  await exchange.begin()
  const rate = [3, 2 ** 30] as const
  const take = (of: SharedCounts, client = 'k'): boolean =>
    of.take(`${rate.join('/')} ${client}`, ...rate).allowed
  assert.equal(take(counts), true)
  await until(() => log.received === 1)
  const warned = once(process, 'warning')
  await first.kill()
  await until(() => !limits.stats().isLinked)
  assert.match(String((await warned)[0]), /limits killed: the servers cannot be reached/)
  assert.deepEqual([take(counts), take(counts), take(counts)], [true, true, false])
  assert.deepEqual([take(others), take(others), take(others)], [true, true, false])
  await using _ = await startServer(Number(new URL(first.url).port), first.folder)
  await until(() => limits.stats().isLinked)
  // The other one finds the server at a time of its own, and misses what is reported before.
  for (let client = 0; log.received === 1; client++) {
    take(counts, String(client))
    await pause(20)
  }
  await exchange.leave()
  await limits.leave()
})
