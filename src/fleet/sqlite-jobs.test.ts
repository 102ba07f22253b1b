/**
 * Jobs, stores and locks in a file, with a connection for each caller and host; and what needs messages.
 *
 * The tests themselves are in jobs/jobs.test.support.ts and state/state.test.support.ts.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sessionTests } from '../http/sessions.test.support.ts'
import { connect } from './connect.ts'
import { newName } from './engine/conformance.test.support.ts'
import { folderOf, runsHere } from './engine/sqlite/node.test.support.ts'
import { host } from './host/host.ts'
import { jobTests } from './jobs/jobs.test.support.ts'
import { stateTests } from './state/state.test.support.ts'

if (runsHere(import.meta.url)) {
  const address = `sqlite:${join(folderOf('sqlite-jobs'), 'work.db')}`
  jobTests('sqlite', () => connect(address))
  stateTests('sqlite', () => connect(address))
  const far = connect(address)
  after(async () => (await far).close())
  sessionTests('sqlite', async () => (await far).store(newName(), { ttlMs: 86_400_000 }))

  test('sqlite: what needs messages is refused, with the engines that have them', async () => {
    await using fleet = await connect(address)
    const module = new URL('data:text/javascript,export const one = () => 1')
    const refused = {
      code: 'FLEET_MESSAGES',
      message: /needs messages .*sqlite: does not have; connect to nats:/,
    }
    assert.throws(() => fleet.zone('z'), refused)
    assert.throws(() => fleet.rooms('r'), refused)
    assert.throws(() => fleet.limits('l'), refused)
    await assert.rejects(host(fleet, { name: 'z', module, version: 'v1' }), refused)
  })

  test('sqlite: an overview has queues', async () => {
    await using fleet = await connect(address)
    const name = newName()
    await fleet.jobs(name).submit('a', 'one' as never, [] as never)
    const { hosts, queues } = await fleet.overview()
    assert.deepEqual(hosts, [])
    const { waiting, taken, dead } = queues.find(({ zone }) => zone === name)!
    assert.deepEqual([waiting, taken, dead], [1, 0, 0])
  })
}
