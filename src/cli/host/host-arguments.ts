/**
 * The words after `corespun host`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'

/** One `corespun host`, as asked for. */
export interface HostWords {
  /** A path, a URL or a package. */
  readonly module: string
  /** Servers, as `connect` takes them. */
  readonly servers: string
  readonly name: string
  readonly workers: number
  readonly inFlightMax: number
  readonly drainMs: number
  readonly credentials: string | undefined
  readonly version: string | undefined
}

const WORKERS_MAX = 1024
const IN_FLIGHT_MAX = 65_536
const DRAIN_MS = 10_000

const flags = {
  nats: { type: 'string' },
  name: { type: 'string' },
  workers: { type: 'string', short: 'w' },
  'in-flight': { type: 'string' },
  drain: { type: 'string' },
  creds: { type: 'string' },
  'module-version': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun host`.
 * @param servers Those of the environment, for when no word names any.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readHostArguments(words: readonly string[], servers?: string): HostWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [module, extra] = positionals
  if (module === undefined || module === '') throw usage('name the module to host')
  if (extra !== undefined) throw usage(`host takes one module; unexpected ${JSON.stringify(extra)}`)
  const address = values.nats ?? servers
  if (address === undefined) throw usage('name the servers: --nats nats://127.0.0.1:4222, or CORESPUN_NATS')
  if (!/^(nats|tls):\/\//.test(address)) throw usage(`--nats takes nats://… or tls://…, not "${address}"`)
  const name = values.name ?? basename(module).replace(/\.\w+$/, '')
  if (!/^[\w-]{1,64}$/.test(name)) throw usage(`--name takes 1 to 64 letters, digits, _ and -, not "${name}"`)
  return Object.freeze({
    module,
    servers: address,
    name,
    workers: wholeNumber('--workers', values.workers, availableParallelism(), WORKERS_MAX),
    inFlightMax: wholeNumber('--in-flight', values['in-flight'], 64, IN_FLIGHT_MAX),
    drainMs: duration('--drain', values.drain) || DRAIN_MS,
    credentials: values.creds,
    version: values['module-version'],
  })
}
