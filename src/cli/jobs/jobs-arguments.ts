/**
 * The words after `corespun jobs`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import type { ParseArgsConfig } from 'node:util'
import type { EndState, JobStatus } from '../../fleet/index.ts'
import { HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'
import { type Connection, withoutCredentials } from '../fleet/connection.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, engineFlags, engineOf, oneOf, quoted } from '../fleet/engine.ts'

/** What is done. */
export type JobsWords = { readonly connection: Connection; readonly json: boolean } & (
  | { readonly verb: 'zones' }
  | { readonly verb: 'list'; readonly zone: string; readonly state?: JobStatus; readonly jobsMax: number }
  | { readonly verb: 'show'; readonly zone: string; readonly key: string }
  | { readonly verb: 'retry'; readonly zone: string; readonly keys: readonly string[]; readonly all: boolean }
  | {
      readonly verb: 'forget'
      readonly zone: string
      readonly keys: readonly string[]
      readonly state: EndState | undefined
    }
  | { readonly verb: 'pause' | 'resume'; readonly zone: string }
)

const STATES = ['waiting', 'running', 'scheduled', 'done', 'dead', 'cancelled'] as const
const END_STATES = ['done', 'dead', 'cancelled'] as const
const VERBS = ['list', 'dead', 'show', 'retry', 'forget', 'pause', 'resume']

const flags = { ...engineFlags, all: { type: 'boolean' } } as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun jobs`.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readJobsArguments(words: readonly string[]): JobsWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [engine, verb = 'zones', zone, ...keys] = positionals
  const { state, limit, all = false, json = false } = values
  const connection = engineOf(engine, values)
  if (verb === 'zones') return Object.freeze({ connection, json, verb })
  if (!VERBS.includes(verb)) throw usage(`jobs takes ${VERBS.join(', ')} or no word, not ${quoted(verb)}`)
  if (zone === undefined)
    throw usage(`name the zone: corespun jobs ${withoutCredentials(engine)} ${verb} <zone>`)
  const common = { connection, json, zone }
  if (verb === 'retry' || verb === 'forget') {
    const asked = verb === 'retry' ? (all ? 'all' : undefined) : state
    const flag = verb === 'retry' ? '--all' : '--state done, dead or cancelled'
    if ((keys.length === 0) === (asked === undefined)) throw usage(`${verb} takes keys, or ${flag}`)
    if (verb === 'retry') return Object.freeze({ ...common, verb, keys, all })
    return Object.freeze({ ...common, verb, keys, state: oneOf('--state', state, END_STATES) })
  }
  const [first, extra] = keys
  if (verb === 'show') {
    if (first === undefined) throw usage('name the key of the job to show')
    if (extra !== undefined) throw usage(`show takes one key; unexpected ${quoted(extra)}`)
    return Object.freeze({ ...common, verb, key: first })
  }
  if (first !== undefined) throw usage(`${verb} takes a zone; unexpected ${quoted(first)}`)
  if (verb === 'pause' || verb === 'resume') return Object.freeze({ ...common, verb })
  const of = verb === 'dead' ? 'dead' : oneOf('--state', state, STATES)
  const jobsMax = wholeNumber('--limit', limit, LIMIT_DEFAULT, LIMIT_MAX)
  return Object.freeze({ ...common, verb: 'list', jobsMax, ...(of && { state: of }) })
}
