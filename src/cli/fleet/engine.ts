/**
 * What commands that look into one engine have in common: `corespun jobs` and `corespun runs`.
 *
 * The engine is their first word, and they connect to it for one act, which Ctrl-C ends.
 */
import { inspect } from 'node:util'
import type { Fleet } from '../../fleet/index.ts'
import { usage, wholeNumber } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import { firstSignal } from '../signals.ts'
import {
  type Connection,
  checkFile,
  connectionFlags,
  connectionOf,
  withoutCredentials,
} from './connection.ts'
import { columns } from './table.ts'

const { sqlite: _, nats: __, postgres: ___, ...access } = connectionFlags
/** Flags of every such command. */
export const engineFlags = {
  ...access,
  state: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Most lines of a list, and as many as there are without `--limit`. */
const LIMIT_MAX = 1_000_000
const LIMIT_DEFAULT = 100
/** Most items that are read at once. */
const PAGE_ITEMS_MAX = 1000
/** Most characters of an error in a line. */
export const REASON_CHARS_MAX = 80

/** @throws {CliError} `CLI_USAGE`. */
function engineOf(engine: string | undefined, words: Parameters<typeof connectionOf>[0]): Connection {
  if (engine === undefined || engine === '')
    throw usage('name the engine: sqlite:work.db, postgres://…, nats://… or tls://…')
  if (/^postgres(ql)?:/.test(engine)) return connectionOf({ ...words, postgres: engine }, undefined)
  if (!engine.startsWith('sqlite:')) {
    if (!/^(nats|tls):\/\//.test(engine))
      throw usage(
        'the engine is sqlite:…, postgres://…, nats://… or tls://…, not ' +
          quoted(withoutCredentials(engine)),
      )
    return connectionOf({ ...words, nats: engine }, undefined)
  }
  return connectionOf({ ...words, sqlite: engine }, undefined)
}

/** An engine, then a verb and what it is about, or neither. @throws {CliError} `CLI_USAGE`. */
export function engineWords<Verb extends string>(
  [engine, verb, name, ...rest]: readonly string[],
  values: Parameters<typeof connectionOf>[0] & { readonly json?: boolean | undefined },
  [command, verbs, about, word]: readonly [string, readonly Verb[], string, string],
) {
  const common = { connection: engineOf(engine, values), json: values.json === true }
  if (verb === undefined) return { common }
  const known = verbs.find((one) => one === verb)
  if (known === undefined) throw usage(`${command} takes ${verbs.join(', ')} or no word, not ${quoted(verb)}`)
  if (name === undefined)
    throw usage(`name ${about}: corespun ${command} ${withoutCredentials(engine)} ${verb} <${word}>`)
  return { common, verb: known, name, rest }
}

/** What `--state` and `--limit` choose of a list. @throws {CliError} `CLI_USAGE`. */
export function chosenOf<State extends string>(
  { state, limit }: { readonly [Flag in 'state' | 'limit']?: string | undefined },
  states: readonly State[],
) {
  const itemsMax = wholeNumber('--limit', limit, LIMIT_DEFAULT, LIMIT_MAX)
  return { itemsMax, state: oneOf('--state', state, states) }
}

/** @throws {CliError} `CLI_USAGE`. */
export function oneOf<Name extends string>(
  flag: string,
  value: string | undefined,
  names: readonly Name[],
): Name | undefined {
  const found = names.find((name) => name === value)
  if (value !== undefined && found === undefined)
    throw usage(`${flag} is one of ${names.join(', ')}, not ${quoted(value)}`)
  return found
}

/**
 * Connects, and does one act.
 * @param name That of the connection.
 * @param work Its signal is aborted by SIGINT and SIGTERM.
 * @returns The exit code.
 * @throws {FleetError} When no server can be reached, or the engine refuses.
 * @throws {CliError} `CLI_USAGE` for a file that does not exist.
 */
export async function connected(
  connection: Connection,
  name: string,
  context: CommandContext,
  work: (far: Fleet, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const { connect } = await import('../../fleet/index.ts')
  const { servers, options } = connection
  checkFile(connection, 'sqlite:')
  const stop = firstSignal(context)
  const controller = new AbortController()
  let ended: number | undefined
  void stop.first.then((signal) => {
    ended = signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
    controller.abort()
  })
  try {
    const far = await connect(servers, { name, ...options })
    try {
      return await work(far, controller.signal)
    } finally {
      await far.close()
    }
  } catch (error) {
    if (ended === undefined) throw error
    return ended
  } finally {
    stop.ignore()
  }
}

/**
 * One key after the other, and how many it was done to.
 * @param work Resolves with whether there was something to do, or with why there was not.
 * @returns The exit code.
 */
export async function each(
  context: CommandContext,
  keys: readonly string[],
  { noun, what, problem }: { readonly noun: string; readonly what: string; readonly problem: string },
  work: (key: string) => Promise<boolean | string>,
): Promise<number> {
  let count = 0
  for (const key of keys) {
    const outcome = await work(key)
    if (outcome === true) count++
    else missed(context, outcome || `${quoted(key)} is ${problem}`)
  }
  counted(context, count, noun, what)
  return count < keys.length ? ExitCode.itemsFailed : ExitCode.ok
}

export function counted({ stdout }: CommandContext, count: number, noun: string, what: string): number {
  stdout.write(`${count} ${count === 1 ? noun : `${noun}s`} ${what}\n`)
  return ExitCode.ok
}

/** What was named is not there, or not in the state that the verb needs. */
export function missed({ stderr }: CommandContext, problem: string): number {
  stderr.write(`corespun: ${problem}\n`)
  return ExitCode.itemsFailed
}

export function writeTable(
  stdout: CommandContext['stdout'],
  head: readonly string[],
  rows: readonly string[][],
): void {
  stdout.write(`${columns(head, rows, Infinity).join('\n')}\n`)
}

/** How items are written: as a table, or each as a line of JSON. */
interface Rows<Item> {
  readonly head: readonly string[]
  readonly cells: (item: Item) => string[]
  readonly json?: (item: Item) => string
}

export function writeRows<Item>(
  { stdout }: CommandContext,
  isJson: boolean,
  items: readonly Item[],
  { head, cells, json = JSON.stringify }: Rows<Item>,
): number {
  if (isJson) for (const item of items) stdout.write(`${json(item)}\n`)
  else writeTable(stdout, head, items.map(cells))
  return ExitCode.ok
}

/**
 * Lists page by page; lines of JSON are written as soon as they are read.
 * @param read Reads a page, which may have more than it is asked for.
 * @returns The exit code.
 */
export async function listPages<Item>(
  context: CommandContext,
  { json, itemsMax }: { readonly json: boolean; readonly itemsMax: number },
  rows: Rows<Item>,
  read: (
    after: string | undefined,
    itemsMax: number,
  ) => Promise<readonly [items: readonly Item[], next: string | undefined]>,
): Promise<number> {
  const found: Item[] = []
  let count = 0
  let after: string | undefined
  let isMore = false
  do {
    const [page, next] = await read(after, Math.min(PAGE_ITEMS_MAX, itemsMax - count))
    const items = page.slice(0, itemsMax - count)
    count += items.length
    if (json) writeRows(context, json, items, rows)
    else found.push(...items)
    after = next
    isMore = count === itemsMax && (after !== undefined || items.length < page.length)
  } while (after !== undefined && count < itemsMax)
  if (!json) writeRows(context, json, found, rows)
  if (isMore) context.stderr.write(`corespun: there are more; --limit is ${itemsMax}\n`)
  return ExitCode.ok
}

/** An error as JSON has it. */
export function errorForJson(error: unknown) {
  const { name, message, code } = Object(error) as Partial<Error & { code: unknown }>
  return { name, message: message ?? String(error), code }
}

/** JSON of an object and a field, which is described if JSON cannot write it. */
export function jsonWith(all: object, field: string, value: unknown): string {
  try {
    return JSON.stringify({ ...all, [field]: value })
  } catch {
    return JSON.stringify({ ...all, [field]: inspect(value) })
  }
}

export const quoted = (text: string): string => JSON.stringify(text)
