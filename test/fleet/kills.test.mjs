/**
 * Jobs on servers under SIGKILL of hosts, callers and the server: none is lost, and a key has one result.
 *
 * kills/kills.mjs does it, also for a file (sqlite.test.mjs). `npm run check:long -- fleet-kills` kills 200
 * times. Without a server of NATS, or of Postgres, the test of it is skipped.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { serverEnv } from '../../scripts/test/nats.mjs'
import { timeout, underKills } from './kills/kills.mjs'

const { CORESPUN_KILLS, CORESPUN_NATS_SERVER } = process.env
// The suite has them already; a long step has not.
if (CORESPUN_KILLS !== undefined && CORESPUN_NATS_SERVER === undefined)
  Object.assign(process.env, await serverEnv())
const [nats, postgres] = await Promise.all([
  import('../../dist/fleet/engine/nats/server.test.support.js'),
  import('../../dist/fleet/engine/postgres/server.test.support.js'),
])

const folder = mkdtempSync(join(tmpdir(), 'fleet-kills-'))
after(() => rmSync(folder, { recursive: true, force: true }))
/** A host, a caller and the server, once each. */
const SMALL = { kills: 3, jobs: 90 }

test('hosts, callers and a server of Postgres are killed', { skip: postgres.SKIP, timeout }, async (t) => {
  const server = await postgres.startServer([])
  t.after(() => server[Symbol.asyncDispose]())
  const restart = async () => {
    await server.kill()
    await server.start()
  }
  await underKills(t, { address: server.url(), log: join(folder, 'postgres.log'), restart }, SMALL)
})

test('hosts, callers and a server of NATS are killed', { skip: nats.SKIP, timeout }, async (t) => {
  let server = await nats.startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const restart = async () => {
    await server.kill()
    server = await nats.startServer(Number(new URL(server.url).port), server.folder)
  }
  await underKills(t, { address: server.url, log: join(folder, 'nats.log'), restart }, SMALL)
})
