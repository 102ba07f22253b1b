/**
 * Calls, and parts of arrows, over the engine in memory.
 *
 * The tests themselves are in calls.test.support.ts and arrows.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from './connect.ts'
import { arrowTests } from './arrows.test.support.ts'
import { callTests } from './calls.test.support.ts'
import { host } from './host/host.ts'

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
  const far = fleet.zone<{ score(text: string): number }>('scores')
  await assert.rejects(far.run('score', 'x' as never), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(far.run('' as never, ['x']), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(far.run('score', ['x'], { timeoutMs: -1 }), { code: 'FLEET_ARGUMENT' })
  assert.throws(() => far.stream('score' as never, 5 as never), { code: 'FLEET_ARGUMENT' })
  assert.throws(() => far.map(['x'], 'score', { callsMax: 0 }), { code: 'FLEET_ARGUMENT' })
  await fleet.close()
})
