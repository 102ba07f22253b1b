/**
 * The words after `corespun host`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'
import { connectionFlags, connectionOf } from '../fleet/connection.ts'

/** One `corespun host`, as asked for. */
export type HostWords = Exclude<ReturnType<typeof readHostArguments>, typeof HELP>

const WORKERS_MAX = 1024
const IN_FLIGHT_MAX = 65_536
const DRAIN_MS = 10_000
const REPLICAS_MAX = 5

const flags = {
  ...connectionFlags,
  name: { type: 'string' },
  workers: { type: 'string', short: 'w' },
  'in-flight': { type: 'string' },
  jobs: { type: 'string' },
  lease: { type: 'string' },
  drain: { type: 'string' },
  replicas: { type: 'string' },
  'module-version': { type: 'string' },
  'no-observe': { type: 'boolean' },
  'allow-control': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun host`.
 * @param servers Those of the environment, for when no word names any.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readHostArguments(words: readonly string[], servers?: string) {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [module, extra] = positionals
  if (module === undefined || module === '') throw usage('name the module to host')
  if (extra !== undefined) throw usage(`host takes one module; unexpected ${JSON.stringify(extra)}`)
  const connection = connectionOf(values, servers)
  const { sqlite, postgres } = values
  const jobsMax = wholeNumber('--jobs', values.jobs, 0, IN_FLIGHT_MAX)
  if ((sqlite ?? postgres) !== undefined && jobsMax === 0)
    throw usage(`with --${sqlite === undefined ? 'postgres' : 'sqlite'} a host takes jobs alone: --jobs 4`)
  const name = values.name ?? basename(module).replace(/\.\w+$/, '')
  if (!/^[\w-]{1,64}$/.test(name)) throw usage(`--name takes 1 to 64 letters, digits, _ and -, not "${name}"`)
  return Object.freeze({
    module,
    connection,
    name,
    workers: wholeNumber('--workers', values.workers, availableParallelism(), WORKERS_MAX),
    inFlightMax: wholeNumber('--in-flight', values['in-flight'], 64, IN_FLIGHT_MAX),
    jobsMax,
    leaseMs: duration('--lease', values.lease) || undefined,
    drainMs: duration('--drain', values.drain) || DRAIN_MS,
    replicas: wholeNumber('--replicas', values.replicas, 0, REPLICAS_MAX) || undefined,
    version: values['module-version'],
    /** Whether it has a control socket. */
    observe: values['no-observe'] !== true,
    /** Whether that allows to change something. */
    allowControl: values['allow-control'] === true,
  })
}
