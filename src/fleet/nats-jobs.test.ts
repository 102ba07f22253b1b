/**
 * Jobs over NATS, at a server of its own.
 *
 * The tests themselves are in jobs/jobs.test.support.ts; without a server they are skipped.
 */
import { after, test } from 'node:test'
import { connect } from './connect.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { jobTests } from './jobs/jobs.test.support.ts'

if (SKIP !== false) test('nats: jobs', { skip: SKIP })
else {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  jobTests('nats', async () => connect((await server).url))
}
