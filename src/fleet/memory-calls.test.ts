/**
 * Calls, and parts of arrows, over the engine in memory.
 *
 * The tests themselves are in calls.test.support.ts and arrows.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { connect } from './connect.ts'
import { decode, encode } from '../transport/index.ts'
import { arrowTests } from './arrows.test.support.ts'
import { callTests, pinging } from './calls.test.support.ts'
import { host } from './host/host.ts'
import { AHEAD_MAX } from './settings.ts'

const open = () => connect('memory:calls', { valueBytesMax: 4_000_000 })
callTests('memory', open)
arrowTests('memory', open)

test('wrong arguments are refused by name', async () => {
  for (const address of ['http://x', '', 'nats://', 'nats://a,,b', 5 as never])
    await assert.rejects(connect(address), { code: 'FLEET_ARGUMENT' })
  const fleet = await connect('memory:wrong')
  for (const name of ['', 'a b', 'a.b', '*', 'x'.repeat(65), undefined as never])
    assert.throws(() => fleet.zone(name), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(host(fleet, { name: 'a b', module: 'x' }), { code: 'FLEET_ARGUMENT' })
  const noZone = { name: 'a', module: import.meta.url, zone: { run() {} } as never }
  await assert.rejects(host(fleet, noZone), /FLEET_ARGUMENT|host\(\): zone must be a zone/)
  await assert.rejects(host(fleet, { name: 'a' } as never), { code: 'FLEET_ARGUMENT' })
  for (const module of [new URL('./nope.js', import.meta.url), new URL('.', import.meta.url), '/nope.js'])
    await assert.rejects(host(fleet, { name: 'a', module }), /host\(\): module must be a file that exists/)
  const far = fleet.zone<{ score(text: string): number }>('scores')
  await assert.rejects(far.run('score', 'x' as never), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(far.run('' as never, ['x']), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(far.run('score', ['x'], { timeoutMs: -1 }), { code: 'FLEET_ARGUMENT' })
  assert.throws(() => far.stream('score' as never, 5 as never), { code: 'FLEET_ARGUMENT' })
  assert.throws(() => far.map(['x'], 'score', { callsMax: 0 }), { code: 'FLEET_ARGUMENT' })
  await fleet.close()
})

test('however much a caller asks for, what a host sends in advance is bounded', async () => {
  await using fleet = await connect('memory:greedy')
  const module = new URL('./scores.test.support.js', import.meta.url)
  await using hosting = await host(fleet, { name: 'greedy', module, version: 'v1' })
  const subject = `corespun.host.greedy.${hosting.id}`
  const far = fleet.zone<typeof import('./scores.test.support.ts')>('greedy')
  const end = pinging(fleet, subject, ['x.1'])
  let parts = 0
  const call = encode(['run', 'x.1', '', 'rows', 'x', 0, 0, 1e9, encode([3 * AHEAD_MAX])])
  fleet.engine.messages!.ask(subject, call, (reply) => {
    if ((decode(reply!) as string[])[0] === 'part') parts++
  })
  for (const bound of [AHEAD_MAX, 2 * AHEAD_MAX]) {
    await until(() => parts >= bound)
    await far.run('score', ['x'])
    assert.equal(parts, bound)
    fleet.engine.messages!.send(subject, encode(['more', 'x.1', 1e9]))
  }
  end()
  fleet.engine.messages!.send(subject, encode(['cancel', 'x.1']))
})
