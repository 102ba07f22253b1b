/**
 * Durable runs in Postgres, in a schema for each test; without a server they are skipped.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import { test } from 'node:test'
import pg from 'pg'
import { SKIP, serverOfFile } from '../fleet/engine/postgres/server.test.support.ts'
import { connect } from '../fleet/index.ts'
import { checkRows } from './rows.test.support.ts'
import { runTests } from './runs.test.support.ts'

if (SKIP !== false) test('postgres: runs', { skip: SKIP })
else {
  const server = serverOfFile()
  runTests('postgres', async (name) => connect((await server()).url(), { schema: name }))

  test('postgres: SQL reads runs and their steps', async () => {
    const connectionString = (await server()).url()
    const fleet = await connect(connectionString, { schema: 'rows' })
    const client = new pg.Client({ connectionString, options: '-c search_path=rows' })
    await client.connect()
    try {
      await checkRows(fleet, 1, async (sql) => (await client.query(sql)).rows as Record<string, unknown>[])
    } finally {
      await client.end()
      await fleet.close()
    }
  })
}
