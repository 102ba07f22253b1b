/**
 * The words after `corespun test`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import { availableParallelism } from 'node:os'
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'

/** One `corespun test`, as asked for. */
export type TestWords = Exclude<ReturnType<typeof readTestArguments>, typeof HELP>

const WORKERS_MAX = 1024
const SEEDS_MAX = 999_999_999

const flags = {
  seeds: { type: 'string' },
  workers: { type: 'string', short: 'w' },
  timeout: { type: 'string', short: 't' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun test`.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readTestArguments(words: readonly string[]) {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  if (positionals.length === 0) throw usage('name the files whose checks to play')
  const { seeds } = values
  return Object.freeze({
    files: Object.freeze(positionals),
    /** Of each check; `undefined`: as CORESPUN_SEEDS or the check has it. */
    seeds: seeds === undefined ? undefined : wholeNumber('--seeds', seeds, 0, SEEDS_MAX),
    workers: wholeNumber('--workers', values.workers, availableParallelism(), WORKERS_MAX),
    /** Of one process; 0: no limit. */
    timeoutMs: duration('--timeout', values.timeout),
    json: values.json === true,
  })
}
