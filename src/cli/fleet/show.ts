/**
 * `corespun fleet`: hosts and queues of a fleet, once or again and again.
 *
 * `overview()` of corespun/fleet has them; what is left here is the table (table.ts), the terminal, and the
 * hosts that have stopped replying, which an overview alone does not contain.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { CorespunError, oneLine } from '../../base/index.ts'
import type { Fleet } from '../../fleet/index.ts'
import { ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import { firstSignal } from '../signals.ts'
import { checkFile } from './connection.ts'
import type { ShowWords } from './fleet-arguments.ts'
import { Seen, tableOf } from './table.ts'

/** Where the cursor is when the terminal is empty. */
const HOME = '\u001B[H'
const CLEAR_BELOW = '\u001B[J'

/**
 * Show a fleet, until a signal comes where it is watched.
 * @throws {FleetError} When no server can be reached, or the servers refuse; while it is watched, what they
 *   do not confirm is shown instead.
 * @throws {CliError} `CLI_USAGE` for a file that does not exist: who looks must not create it.
 */
export async function showFleet(words: ShowWords, context: CommandContext): Promise<number> {
  const { connect } = await import('../../fleet/index.ts')
  const { servers, options } = words.connection
  checkFile(words.connection, '--sqlite ')
  const isTerminal = context.stdout.isTTY === true && !words.json
  const stop = firstSignal(context)
  try {
    const far = await connect(servers, { name: 'corespun fleet', ...options })
    try {
      const isWatched = words.watch ?? isTerminal
      if (!isWatched) context.stdout.write(await shown(far, new Seen(), words, context))
      else await watch(far, stop.first, words, context)
      return ExitCode.ok
    } finally {
      await far.close()
    }
  } finally {
    stop.ignore()
  }
}

async function watch(
  far: Fleet,
  signal: Promise<unknown>,
  words: ShowWords,
  context: CommandContext,
): Promise<void> {
  const seen = new Seen()
  const controller = new AbortController()
  const ended = signal.then(() => controller.abort())
  while (!controller.signal.aborted) {
    const look = shown(far, seen, words, context).catch((error: unknown) => {
      if (!(error instanceof CorespunError) || error.code !== 'FLEET_TIMEOUT') throw error
      return `${oneLine(error.message)}\n`
    })
    const text = await Promise.race([look, ended])
    if (text === undefined) break
    draw(context, text, words)
    await pause(words.everyMs, undefined, { signal: controller.signal }).catch(() => {}) // ended
  }
}

async function shown(
  far: Fleet,
  seen: Seen,
  { json }: ShowWords,
  { stdout }: CommandContext,
): Promise<string> {
  const overview = await far.overview()
  if (json) return `${JSON.stringify(overview)}\n`
  const { columns } = stdout as { readonly columns?: number } // Of a terminal.
  return tableOf(seen.with(overview, performance.now()), columns)
}

function draw({ stdout }: CommandContext, text: string, { json }: ShowWords): void {
  stdout.write(stdout.isTTY === true && !json ? `${HOME}${CLEAR_BELOW}${text}` : text)
}
