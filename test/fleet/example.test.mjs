/**
 * `npm run example:fleet`, small: three servers and three hosts as processes, of which the leader and a host
 * are killed under load.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SKIP } from '../../dist/fleet/engine/nats/server.test.support.js'
import { showFleet } from '../../scripts/example/main.mjs'

test(
  'no job is lost and none has two results while a leader and a host are killed',
  { skip: SKIP },
  async (t) => {
    const lines = []
    t.mock.method(console, 'log', (line) => lines.push(line))
    assert.equal(await showFleet(['--jobs', '60', '--kills', '2']), 0, lines.join('\n'))
    const [, accepted, lost, two] = /accepted (\d+), lost (\d+), two results (\d+)/.exec(lines.at(-1))
    assert.deepEqual([accepted, lost, two], ['60', '0', '0'])
    assert.match(lines.at(-1), /^killed 1 servers and 1 hosts;/)
  },
)

test('without nats-server it shows nothing, and has failed', async (t) => {
  const error = t.mock.method(console, 'error', () => {})
  assert.equal(await showFleet([], async (_, skip) => skip('no way')), 1)
  assert.deepEqual(error.mock.calls[0].arguments, ['no way'])
})
