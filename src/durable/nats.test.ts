/**
 * Durable runs over NATS, at a server for each test; without a server they are skipped.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import { after, test } from 'node:test'
import { connect } from '../fleet/index.ts'
import { type NatsServer, SKIP, startServer } from '../fleet/engine/nats/server.test.support.ts'
import { runTests } from './runs.test.support.ts'

if (SKIP !== false) test('nats: runs', { skip: SKIP })
else {
  const servers = new Map<string, Promise<NatsServer>>()
  after(async () => {
    for (const server of servers.values()) await (await server)[Symbol.asyncDispose]()
  })
  runTests('nats', async (name) => {
    const server = servers.get(name) ?? startServer()
    servers.set(name, server)
    return connect((await server).url)
  })
}
