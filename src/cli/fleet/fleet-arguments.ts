/**
 * The words after `corespun fleet`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'
import { type Connection, connectionFlags, connectionOf } from './connection.ts'

/** `corespun fleet config`, as asked for. */
export interface ConfigWords {
  /** The path of the file with users. */
  readonly file: string
}

/** `corespun fleet create`, as asked for. */
export interface CreateWords extends ConfigWords {
  readonly connection: Connection
  readonly replicas: number | undefined
  readonly leaseMs: number | undefined
}

/** `corespun fleet`, as asked for. */
export interface ShowWords {
  readonly connection: Connection
  readonly json: boolean
  /** Whether it goes on until a signal; undefined: on a terminal. */
  readonly watch: boolean | undefined
  readonly everyMs: number
}

const EVERY_MS = 1000
const REPLICAS_MAX = 5

const flags = {
  ...connectionFlags,
  json: { type: 'boolean' },
  watch: { type: 'boolean' },
  every: { type: 'string' },
  replicas: { type: 'string' },
  lease: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun fleet`.
 * @param servers Those of the environment, for when no word names any.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readFleetArguments(
  words: readonly string[],
  servers?: string,
): ConfigWords | CreateWords | ShowWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [verb, file, extra] = positionals
  if (verb !== undefined) {
    if (verb !== 'config' && verb !== 'create')
      throw usage(`fleet takes config, create or no word, not ${JSON.stringify(verb)}`)
    if (file === undefined) throw usage(`name the file of users: corespun fleet ${verb} users.json`)
    if (extra !== undefined) throw usage(`fleet ${verb} takes one file; unexpected ${JSON.stringify(extra)}`)
    if (verb === 'config') return Object.freeze({ file })
  }
  const connection = connectionOf(values, servers)
  if (file !== undefined)
    return Object.freeze({
      file,
      connection,
      replicas: wholeNumber('--replicas', values.replicas, 0, REPLICAS_MAX) || undefined,
      leaseMs: duration('--lease', values.lease) || undefined,
    })
  return Object.freeze({
    connection,
    json: values.json === true,
    watch: values.watch,
    everyMs: duration('--every', values.every) || EVERY_MS,
  })
}
