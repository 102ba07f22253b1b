/**
 * `npm run example:fleet`, small: three servers and three hosts as processes, of which the leader and a host
 * are killed under load.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SKIP } from '../../dist/fleet/engine/nats/server.test.support.js'
import { showFleet } from './example/main.mjs'

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

test('kills go by time until the jobs have ended', { skip: SKIP }, async (t) => {
  const lines = []
  t.mock.method(console, 'log', (line) => lines.push(line))
  const words = ['--jobs', '60', '--every', '1ms', '--kills', '3']
  assert.equal(await showFleet(words), 0, lines.join('\n'))
  assert.match(lines[0], /; 60 jobs, 3 times, every 1 ms kill$/)
  assert.match(lines[1], /^killed server-\d after \d+ results$/)
  assert.match(lines.at(-1), /^killed [12] servers and [01] hosts; accepted 60, lost 0, two results 0, /)
  for (const every of ['5', '0s', '-1s', '5 min', ''])
    await assert.rejects(showFleet([`--every=${every}`]), /--every takes a time such as 5s/)
})

test('without nats-server it shows nothing, and has failed', async (t) => {
  const error = t.mock.method(console, 'error', () => {})
  assert.equal(await showFleet([], async (_, skip) => skip('no way')), 1)
  assert.deepEqual(error.mock.calls[0].arguments, ['no way'])
})
