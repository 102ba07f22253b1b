/**
 * The words after `corespun jobs`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import type { ParseArgsConfig } from 'node:util'
import type { EndState, JobStatus, LiveState } from '../../fleet/index.ts'
import { HELP, usage, wordsOf } from '../arguments.ts'
import type { Connection } from '../fleet/connection.ts'
import { chosenOf, engineFlags, engineWords, oneOf, quoted } from '../fleet/engine.ts'

/** What is done. */
export type JobsWords = { readonly connection: Connection; readonly json: boolean } & (
  | { readonly verb: 'zones' }
  | {
      readonly verb: 'list'
      readonly zone: string
      readonly state: JobStatus | undefined
      readonly itemsMax: number
    }
  | { readonly verb: 'show'; readonly zone: string; readonly key: string }
  | { readonly verb: 'retry'; readonly zone: string; readonly keys: readonly string[]; readonly all: boolean }
  | {
      readonly verb: 'cancel'
      readonly zone: string
      readonly keys: readonly string[]
      readonly state: LiveState | undefined
    }
  | {
      readonly verb: 'forget'
      readonly zone: string
      readonly keys: readonly string[]
      readonly state: EndState | undefined
    }
  | { readonly verb: 'pause' | 'resume'; readonly zone: string }
)

const LIVE_STATES = ['waiting', 'running', 'scheduled'] as const
const END_STATES = ['done', 'dead', 'cancelled'] as const
const STATES = [...LIVE_STATES, ...END_STATES] as const
const VERBS = ['list', 'dead', 'show', 'retry', 'cancel', 'forget', 'pause', 'resume'] as const
/** In place of keys. */
const MANY = {
  retry: '--all',
  cancel: '--state waiting, running or scheduled',
  forget: '--state done, dead or cancelled',
} as const
const COMMAND = ['jobs', VERBS, 'the zone', 'zone'] as const

const flags = { ...engineFlags, all: { type: 'boolean' } } as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun jobs`.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readJobsArguments(words: readonly string[]): JobsWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const { common: both, verb, name: zone, rest: keys } = engineWords(positionals, values, COMMAND)
  if (verb === undefined) return Object.freeze({ ...both, verb: 'zones' })
  const { state, all = false } = values
  const common = { ...both, zone }
  if (verb === 'retry' || verb === 'cancel' || verb === 'forget') {
    const asked = verb === 'retry' ? (all ? 'all' : undefined) : state
    if ((keys.length === 0) === (asked === undefined)) throw usage(`${verb} takes keys, or ${MANY[verb]}`)
    if (verb === 'retry') return Object.freeze({ ...common, verb, keys, all })
    return verb === 'cancel'
      ? Object.freeze({ ...common, verb, keys, state: oneOf('--state', state, LIVE_STATES) })
      : Object.freeze({ ...common, verb, keys, state: oneOf('--state', state, END_STATES) })
  }
  const [first, extra] = keys
  if (verb === 'show') {
    if (first === undefined) throw usage('name the key of the job to show')
    if (extra !== undefined) throw usage(`show takes one key; unexpected ${quoted(extra)}`)
    return Object.freeze({ ...common, verb, key: first })
  }
  if (first !== undefined) throw usage(`${verb} takes a zone; unexpected ${quoted(first)}`)
  if (verb === 'pause' || verb === 'resume') return Object.freeze({ ...common, verb })
  const chosen = chosenOf(verb === 'dead' ? { ...values, state: 'dead' } : values, STATES)
  return Object.freeze({ ...common, verb: 'list', ...chosen })
}
