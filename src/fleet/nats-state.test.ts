/**
 * Stores and locks over NATS, at a server of its own.
 *
 * The tests themselves are in state/state.test.support.ts; without a server they are skipped.
 */
import { after, test } from 'node:test'
import { connect } from './connect.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { stateTests } from './state/state.test.support.ts'

if (SKIP !== false) test('nats: stores and locks', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  stateTests('nats', async () => connect((await server).url))
}
