/**
 * `npm test -- fleet`: the tests of corespun/fleet that need a server.
 *
 * Tests start it themselves, on loopback and a free port. Where its program cannot be had
 * (test/fleet/servers.mjs), they are skipped with the reason.
 */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { serverProgram } from '../../test/fleet/servers.mjs'
import { suite } from './suite.mjs'

const WORDS = ['fleet/nats', 'durable/nats', 'fleet/engine/nats', 'test/fleet']

/**
 * @param {string[]} words Those whose path has one of these; all without any.
 * @param {(paths: string[]) => string[]} [choose] Which of them; all by default.
 */
export async function fleetTests(words, report, choose) {
  const env = await serverEnv()
  if (env.CORESPUN_NATS_SERVER === undefined) return 0
  const node = { name: `Node ${process.versions.node}`, path: process.execPath }
  return suite(words.length > 0 ? words : WORDS, node, report, choose, env)
}

/** Those that need no server. */
export function withoutFleet(paths) {
  return paths.filter((path) => !WORDS.some((word) => path.includes(word)))
}

/**
 * The variables by which tests find servers, of NATS and, where Debian's is not installed, of Postgres; none,
 * with a printed reason, for one that cannot be had.
 */
export async function serverEnv() {
  const nats = await serverProgram('nats-server')
  const postgres = existsSync('/usr/lib/postgresql') ? undefined : await serverProgram('postgres')
  return {
    ...(nats !== undefined && { CORESPUN_NATS_SERVER: nats }),
    ...(postgres !== undefined && { CORESPUN_POSTGRES: dirname(postgres) }),
  }
}
