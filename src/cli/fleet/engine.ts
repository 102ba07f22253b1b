/**
 * What commands that look into one engine have in common: `corespun jobs` and `corespun runs`.
 *
 * The engine is their first word, and they connect to it for one act, which Ctrl-C ends.
 */
import type { Fleet } from '../../fleet/index.ts'
import { usage } from '../arguments.ts'
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
export const LIMIT_MAX = 1_000_000
export const LIMIT_DEFAULT = 100
/** Most items that are read at once. */
export const PAGE_ITEMS_MAX = 1000
/** Most characters of an error in a line. */
export const REASON_CHARS_MAX = 80

/** @throws {CliError} `CLI_USAGE`. */
export function engineOf(engine: string | undefined, words: Parameters<typeof connectionOf>[0]): Connection {
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
  return connectionOf({ ...words, sqlite: engine.slice('sqlite:'.length) }, undefined)
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

/** One key after the other; `work` resolves with whether there was something to do. */
export async function each(
  context: CommandContext,
  keys: readonly string[],
  problem: string,
  work: (key: string) => Promise<boolean>,
): Promise<{ readonly count: number; readonly code: number }> {
  let code: number = ExitCode.ok
  let count = 0
  for (const key of keys)
    if (await work(key)) count++
    else code = missed(context, `${quoted(key)} is ${problem}`)
  return { count, code }
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

/** An error as JSON has it. */
export function errorForJson(error: unknown) {
  const { name, message, code } = Object(error) as Partial<Error & { code: unknown }>
  return { name, message: message ?? String(error), code }
}

export const quoted = (text: string): string => JSON.stringify(text)
