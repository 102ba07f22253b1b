/**
 * Calls, and parts of arrows, over NATS, at a server of its own.
 *
 * The tests themselves are in calls.test.support.ts and arrows.test.support.ts; without a server they are
 * skipped.
 */
import { after, test } from 'node:test'
import { connect } from './connect.ts'
import { arrowTests } from './arrows.test.support.ts'
import { callTests } from './calls.test.support.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'

if (SKIP !== false) test('nats: calls', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  const open = async () => connect((await server).url, { valueBytesMax: 4_000_000 })
  callTests('nats', open)
  arrowTests('nats', open)
}
