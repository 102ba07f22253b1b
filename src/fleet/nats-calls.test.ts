/**
 * Calls over NATS, at a server of its own.
 *
 * The tests themselves are in calls.test.support.ts; without a server they are skipped.
 */
import { after, test } from 'node:test'
import { connect } from './connect.ts'
import { callTests } from './calls.test.support.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'

if (SKIP !== false) test('nats: calls', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  callTests('nats', async () => connect((await server).url, { valueBytesMax: 4_000_000 }))
}
