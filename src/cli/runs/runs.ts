/**
 * `corespun runs`: the durable runs of an engine, listed, shown, signalled, cancelled, run again and copied.
 *
 * The methods of `Run` do it, of definitions that have a name and no code: nothing is run here. What is left
 * is text and JSON.
 */
import { inspect } from 'node:util'
import { oneLine, reasonOf } from '../../base/index.ts'
import type { Durable, Run, RunInfo, RunState, Runs } from '../../durable/index.ts'
import type { Fleet } from '../../fleet/index.ts'
import { ExitCode } from '../errors.ts'
import {
  PAGE_ITEMS_MAX,
  REASON_CHARS_MAX,
  connected,
  counted,
  each,
  errorForJson,
  missed,
  quoted,
  writeTable,
} from '../fleet/engine.ts'
import type { CommandContext } from '../run/run.ts'
import type { RunsWords } from './runs-arguments.ts'

type Of<Verb extends RunsWords['verb']> = Extract<RunsWords, { readonly verb: Verb }>

/** What each verb has. */
interface Doing {
  readonly work: Runs<readonly Durable[]>
  readonly context: CommandContext
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal
}

/**
 * Do it, and print what was done.
 * @returns The exit code: 1 for a key that has no run, or one that is not in the state that the verb needs.
 * @throws {FleetError} When no server can be reached, or the engine refuses.
 * @throws {CliError} `CLI_USAGE` for a file that does not exist.
 */
export async function runs(words: RunsWords, context: CommandContext): Promise<number> {
  return connected(words.connection, 'corespun runs', context, async (far, signal) => {
    if (words.verb === 'names') return names(far, words, context)
    const { name } = words
    const queues = await far.queues()
    if (!queues.some(({ kind, zone }) => kind === 'runs' && zone === name))
      return missed(context, `no run of ${quoted(name)} was ever started here`)
    const { durable, runs: open } = await import('../../durable/index.ts')
    const definitions: readonly Durable[] = [durable(name, () => undefined as never)]
    const work = await open(far, { definitions, runsMax: 0 })
    try {
      return await done(words, { work, context, signal })
    } catch (error) {
      const { code, message } = Object(error) as Partial<Error & { code: unknown }>
      if (!REFUSED.has(code)) throw error
      return missed(context, oneLine(String(message)))
    } finally {
      await work.close()
    }
  })
}

/** The run is not there, or not in the state that the verb needs. */
const REFUSED: ReadonlySet<unknown> = new Set([
  'RUN_UNKNOWN',
  'RUN_ENDED',
  'RUN_NOT_AGAIN',
  'RUN_UNREADABLE',
  'RUN_ARGUMENT',
  'RUN_TOO_LARGE',
])

async function done(words: Exclude<RunsWords, Of<'names'>>, doing: Doing): Promise<number> {
  const { work, context } = doing
  const { name } = words
  const run = (key: string): Run => work.get(name, key)
  switch (words.verb) {
    case 'list':
      return list(words, doing)
    case 'show':
      return show(words, run(words.key), context)
    case 'signal':
      await run(words.key).signal(words.signal, words.value)
      context.stdout.write(`the signal ${quoted(words.signal)} is kept for ${quoted(words.key)}\n`)
      return ExitCode.ok
    case 'fork': {
      const { from, as } = words
      const copy = await run(words.key).fork({ from, ...(as !== undefined && { key: as }) })
      context.stdout.write(`${copy.key}\n`)
      return ExitCode.ok
    }
    case 'cancel':
      return many(words, context, 'cancelled', `not a run of ${quoted(name)} that can be cancelled`, (key) =>
        run(key).cancel({ now: words.now }),
      )
    case 'forget':
      return many(words, context, 'forgotten', `not a run of ${quoted(name)} that has ended`, (key) =>
        run(key).forget(),
      )
    case 'retry': {
      const { from } = words
      return many(words, context, 'run anew', '', async (key) => {
        await run(key).again(from === undefined ? {} : { from })
        return true
      })
    }
  }
}

/** A key that is refused does not keep the others from being done. */
async function many(
  { keys }: { readonly keys: readonly string[] },
  context: CommandContext,
  what: string,
  problem: string,
  work: (key: string) => Promise<boolean>,
): Promise<number> {
  let refusals = 0
  const { count, code } = await each(context, keys, problem, async (key) => {
    try {
      return await work(key)
    } catch (error) {
      const { code: of, message } = Object(error) as Partial<Error & { code: unknown }>
      if (!REFUSED.has(of)) throw error
      missed(context, oneLine(String(message)))
      refusals++
      return true
    }
  })
  counted(context, count - refusals, 'run', what)
  return refusals > 0 ? ExitCode.itemsFailed : code
}

/** How many runs each definition has that have not ended. */
async function names(far: Fleet, { json }: RunsWords, { stdout }: CommandContext): Promise<number> {
  const all = []
  for (const { kind, zone: name, waiting, taken, waitedMs } of await far.queues())
    if (kind === 'runs') all.push({ name, waiting, taken, waitedMs })
  if (json) for (const one of all) stdout.write(`${JSON.stringify(one)}\n`)
  else
    writeTable(
      stdout,
      ['NAME', 'WAITING', 'TAKEN'],
      all.map(({ name, waiting, taken }) => [name, String(waiting), String(taken)]),
    )
  return ExitCode.ok
}

/** Page by page, so that the first ones are there at once. */
async function list(words: Of<'list'>, { work, context, signal }: Doing): Promise<number> {
  const { name, state, runsMax, json } = words
  const { stdout } = context
  const found: RunInfo[] = []
  let count = 0
  let after: string | undefined
  let isMore = false
  do {
    signal.throwIfAborted()
    const page = await work.list(name, { itemsMax: PAGE_ITEMS_MAX, ...(after !== undefined && { after }) })
    const fits = page.items.filter(({ status }) => state === undefined || status === state)
    const items = fits.slice(0, runsMax - count)
    count += items.length
    if (json) for (const item of items) stdout.write(`${JSON.stringify(item)}\n`)
    else found.push(...items)
    after = page.next
    isMore = count === runsMax && (after !== undefined || items.length < fits.length)
  } while (after !== undefined && count < runsMax)
  if (!json) writeTable(stdout, ['KEY', 'STATE', 'STARTED', 'ENDED'], found.map(cells))
  if (isMore) context.stderr.write(`corespun: there are more; --limit is ${runsMax}\n`)
  return ExitCode.ok
}

const cells = ({ key, status, startedAt, endedAt }: RunInfo): string[] => [
  oneLine(key),
  status,
  startedAt.toISOString(),
  endedAt?.toISOString() ?? '-',
]

async function show({ name, json }: Of<'show'>, run: Run, { stdout }: CommandContext): Promise<number> {
  const state = await run.state()
  const value = state.status === 'done' ? await run.result().catch(reasonOf) : undefined
  stdout.write(json ? `${jsonOf(state, value)}\n` : '')
  if (json) return ExitCode.ok
  const { status, startedAt, endedAt, resumedCount, awaits, error } = state
  const lines = [
    `${name} ${oneLine(state.key)}: ${status}, started ${startedAt.toISOString()}` +
      (endedAt === undefined ? '' : `, ended ${endedAt.toISOString()}`) +
      (resumedCount === 0 ? '' : `, taken up again ${resumedCount} times`),
  ]
  if (awaits.length > 0) lines.push(`waits for the signals ${awaits.map(quoted).join(', ')}`)
  if (error !== undefined) lines.push(`error: ${oneLine(reasonOf(error))}`)
  if (status === 'done') lines.push(`value: ${inspect(value, { depth: 6 })}`)
  stdout.write(`${lines.join('\n')}\n`)
  const rows = state.steps.map(({ key, status: of, at, failures, dueAt, error: failed }) => [
    ...[oneLine(key), of, at.toISOString(), String(failures), dueAt?.toISOString() ?? '-'],
    failed === undefined ? '-' : oneLine(reasonOf(failed)).slice(0, REASON_CHARS_MAX),
  ])
  writeTable(stdout, ['STEP', 'STATE', 'AT', 'FAILED', 'DUE', 'ERROR'], rows)
  return ExitCode.ok
}

/** What JSON cannot write is described. */
function jsonOf(state: RunState, value: unknown): string {
  const errorIn = <With extends { readonly error: unknown }>(of: With) => ({
    ...of,
    error: of.error === undefined ? undefined : errorForJson(of.error),
  })
  const all = { ...errorIn(state), steps: state.steps.map(errorIn) }
  try {
    return JSON.stringify({ ...all, value })
  } catch {
    return JSON.stringify({ ...all, value: inspect(value) })
  }
}
