/**
 * The words after `corespun runs`, checked and completed.
 *
 * As those of `corespun jobs`: a frozen record leaves here, and a wrong word is named.
 */
import type { ParseArgsConfig } from 'node:util'
import { messageOf } from '../../base/index.ts'
import type { RunStatus } from '../../durable/index.ts'
import { HELP, usage, wordsOf } from '../arguments.ts'
import type { Connection } from '../fleet/connection.ts'
import { chosenOf, engineFlags, engineWords, quoted } from '../fleet/engine.ts'

/** What is done. */
export type RunsWords = { readonly connection: Connection; readonly json: boolean } & (
  | { readonly verb: 'names' }
  | {
      readonly verb: 'list'
      readonly name: string
      readonly state: RunStatus | undefined
      readonly itemsMax: number
    }
  | { readonly verb: 'show'; readonly name: string; readonly key: string }
  | {
      readonly verb: 'signal'
      readonly name: string
      readonly key: string
      readonly signal: string
      readonly value: unknown
    }
  | {
      readonly verb: 'cancel' | 'forget' | 'retry'
      readonly name: string
      readonly keys: readonly string[]
      /** Of `cancel`. */
      readonly now: boolean
      /** Of `retry`. */
      readonly from: string | undefined
    }
  | {
      readonly verb: 'fork'
      readonly name: string
      readonly key: string
      readonly from: string
      readonly as: string | undefined
    }
)

const STATES = ['running', 'waiting', 'diverged', 'cancelling', 'done', 'failed', 'cancelled'] as const
const VERBS = ['list', 'show', 'signal', 'cancel', 'retry', 'fork', 'forget'] as const
const COMMAND = ['runs', VERBS, 'the definition of durable()', 'name'] as const
type Verb = (typeof VERBS)[number]

const flags = {
  ...engineFlags,
  from: { type: 'string' },
  as: { type: 'string' },
  now: { type: 'boolean' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun runs`.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readRunsArguments(words: readonly string[]): RunsWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const { common, verb, name, rest } = engineWords(positionals, values, COMMAND)
  if (verb === undefined) return Object.freeze({ ...common, verb: 'names' })
  return Object.freeze({ ...common, ...verbOf(verb, name, rest, values) })
}

type Values = { readonly [Name in 'from' | 'as' | 'state' | 'limit']?: string } & { readonly now?: boolean }
/** Of a union, each without what all have. */
type Own<Words> = Words extends unknown ? Omit<Words, 'connection' | 'json'> : never

/** @throws {CliError} `CLI_USAGE`. */
function verbOf(verb: Verb, name: string, rest: readonly string[], values: Values): Own<RunsWords> {
  const [key, signal, text, ...more] = rest
  const { from, as, now = false } = values
  if (verb === 'list') {
    if (key !== undefined) throw usage(`list takes a name; unexpected ${quoted(key)}`)
    return { verb, name, ...chosenOf(values, STATES) }
  }
  if (key === undefined) throw usage(`name the key of the run: corespun runs <engine> ${verb} ${name} <key>`)
  if (verb === 'cancel' || verb === 'forget' || verb === 'retry') return { verb, name, keys: rest, now, from }
  const extra = verb === 'signal' ? more[0] : signal
  if (extra !== undefined)
    throw usage(
      `${verb} takes ${verb === 'signal' ? 'a name and a value' : 'one key'}; unexpected ${quoted(extra)}`,
    )
  if (verb === 'show') return { verb, name, key }
  if (verb === 'signal') {
    if (signal === undefined) throw usage('name the signal, such as approved')
    return { verb, name, key, signal, value: valueOf(text) }
  }
  if (from === undefined)
    throw usage('fork needs --from, the key of a step that show prints, such as charge#1')
  return { verb, name, key, from, as }
}

/** @throws {CliError} `CLI_USAGE`. */
function valueOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch (error) {
    throw usage(`the value of a signal is JSON, such as true, not ${quoted(text ?? '')}: ${messageOf(error)}`)
  }
}
