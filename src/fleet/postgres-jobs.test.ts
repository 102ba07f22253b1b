/**
 * Jobs, stores and locks in Postgres, with a connection for each caller and host.
 *
 * The tests themselves are in jobs/jobs.test.support.ts and state/state.test.support.ts; without a server
 * they are skipped.
 */
import { test } from 'node:test'
import { connect } from './connect.ts'
import { SKIP, serverOfFile } from './engine/postgres/server.test.support.ts'
import { jobTests } from './jobs/jobs.test.support.ts'
import { stateTests } from './state/state.test.support.ts'

if (SKIP !== false) test('postgres: jobs', { skip: SKIP })
else {
  const server = serverOfFile()
  const open = async () => connect((await server()).url())
  jobTests('postgres', open)
  stateTests('postgres', open)
}
