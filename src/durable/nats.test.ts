/**
 * Durable runs over NATS, at a server of its own; without a server they are skipped.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import { after, test } from 'node:test'
import { connect } from '../fleet/index.ts'
import { SKIP, startServer } from '../fleet/engine/nats/server.test.support.ts'
import { runTests } from './runs.test.support.ts'

if (SKIP !== false) test('nats: runs', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  runTests('nats', async () => connect((await server).url))
}
