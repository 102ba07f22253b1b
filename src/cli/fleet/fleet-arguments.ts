/**
 * The words after `corespun fleet`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, usage, wordsOf } from '../arguments.ts'
import { type Connection, connectionFlags, connectionOf } from './connection.ts'

/** `corespun fleet config`, as asked for. */
export interface ConfigWords {
  /** The path of the file with users. */
  readonly file: string
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

const flags = {
  ...connectionFlags,
  json: { type: 'boolean' },
  watch: { type: 'boolean' },
  every: { type: 'string' },
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
): ConfigWords | ShowWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [verb, file, extra] = positionals
  if (verb !== undefined) {
    if (verb !== 'config') throw usage(`fleet takes config or no word, not ${JSON.stringify(verb)}`)
    if (file === undefined) throw usage('name the file of users: corespun fleet config users.json')
    if (extra !== undefined) throw usage(`fleet config takes one file; unexpected ${JSON.stringify(extra)}`)
    return Object.freeze({ file })
  }
  const { nats, creds, nkey, inbox, ca, cert, key } = values
  return Object.freeze({
    connection: connectionOf({ nats, creds, nkey, inbox, ca, cert, key }, servers),
    json: values.json === true,
    watch: values.watch,
    everyMs: duration('--every', values.every) || EVERY_MS,
  })
}
