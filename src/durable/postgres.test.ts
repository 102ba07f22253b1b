/**
 * Durable runs in Postgres, in a schema for each test; without a server they are skipped.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import { test } from 'node:test'
import { SKIP, serverOfFile } from '../fleet/engine/postgres/server.test.support.ts'
import { connect } from '../fleet/index.ts'
import { runTests } from './runs.test.support.ts'

if (SKIP !== false) test('postgres: runs', { skip: SKIP })
else {
  const server = serverOfFile()
  runTests('postgres', async (name) => connect((await server()).url(), { schema: name }))
}
