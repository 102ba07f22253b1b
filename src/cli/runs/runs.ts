/**
 * `corespun runs`: the durable runs of an engine, listed, shown, signalled, cancelled, run again and copied.
 *
 * The methods of `Run` do it, of definitions that have a name and no code: nothing is run here. What is left
 * is text and JSON.
 */
import { inspect } from 'node:util'
import { durationText, oneLine, reasonOf } from '../../base/index.ts'
import type { Durable, Run, RunInfo, RunState, Runs } from '../../durable/index.ts'
import type { Fleet } from '../../fleet/index.ts'
import { ExitCode } from '../errors.ts'
import {
  REASON_CHARS_MAX,
  connected,
  each,
  errorForJson,
  jsonWith,
  listPages,
  missed,
  quoted,
  writeRows,
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
      return missed(context, refusalOf(error))
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

/** @throws Every other error. */
function refusalOf(error: unknown): string {
  const { code, message } = Object(error) as Partial<Error & { code: unknown }>
  if (!REFUSED.has(code)) throw error
  return oneLine(String(message))
}

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
    default:
      return many(words, doing)
  }
}

type Many = Of<'cancel' | 'forget' | 'retry'>
/** What is done to a run; what was done, and what a run is not that it is not done to. */
const ACTS: Readonly<
  Record<Many['verb'], readonly [(run: Run, words: Many) => Promise<unknown>, what: string, state: string]>
> = {
  cancel: [(run, { now }) => run.cancel({ now }), 'cancelled', 'can be cancelled'],
  forget: [(run) => run.forget(), 'forgotten', 'has ended'],
  retry: [(run, { from }) => run.again(from === undefined ? {} : { from }), 'run anew', 'has ended'],
}

/** A key that is refused does not keep the others from being done. */
function many(words: Many, { work, context }: Doing): Promise<number> {
  const [act, what, state] = ACTS[words.verb]
  const problem = `not a run of ${quoted(words.name)} that ${state}`
  return each(context, words.keys, { noun: 'run', what, problem }, async (key) => {
    try {
      return (await act(work.get(words.name, key), words)) !== false
    } catch (error) {
      return refusalOf(error)
    }
  })
}

/** How many runs each definition has that have not ended. */
async function names(far: Fleet, { json }: RunsWords, context: CommandContext): Promise<number> {
  const all = []
  for (const { kind, zone: name, waiting, taken, waitedMs } of await far.queues())
    if (kind === 'runs') all.push({ name, waiting, taken, waitedMs })
  return writeRows(context, json, all, {
    head: ['NAME', 'WAITING', 'TAKEN'],
    cells: ({ name, waiting, taken }) => [name, String(waiting), String(taken)],
  })
}

function list(words: Of<'list'>, { work, context, signal }: Doing): Promise<number> {
  const { name, state } = words
  return listPages(
    context,
    words,
    { head: ['KEY', 'STATE', 'STARTED', 'ENDED', 'RELEASE'], cells },
    async (after) => {
      signal.throwIfAborted()
      const { items, next } = await work.list(name, { itemsMax: 1000, ...(after !== undefined && { after }) })
      return [items.filter(({ status }) => state === undefined || status === state), next]
    },
  )
}

const cells = ({ key, status, startedAt, endedAt, release = '-' }: RunInfo): string[] => [
  oneLine(key),
  status,
  startedAt.toISOString(),
  endedAt?.toISOString() ?? '-',
  oneLine(release),
]

async function show({ name, json }: Of<'show'>, run: Run, { stdout }: CommandContext): Promise<number> {
  const state = await run.state()
  const value = state.status === 'done' ? await run.result().catch(reasonOf) : undefined
  stdout.write(json ? `${jsonOf(state, value)}\n` : '')
  if (json) return ExitCode.ok
  const { status, startedAt, endedAt, resumedCount, holder, running, awaits, error } = state
  const lines = [
    `${name} ${oneLine(state.key)}: ${status}, started ${startedAt.toISOString()}` +
      (endedAt === undefined ? '' : `, ended ${endedAt.toISOString()}`) +
      (resumedCount === 0 ? '' : `, resumed ${resumedCount === 1 ? 'once' : `${resumedCount} times`}`) +
      (state.release === undefined ? '' : `, of release ${oneLine(state.release)}`) +
      (holder === undefined ? '' : `, at ${oneLine(holder)}`),
  ]
  for (const { key, startedAt: begun } of running)
    lines.push(`runs ${oneLine(key)} since ${begun.toISOString()}`)
  if (awaits.length > 0) lines.push(`waits for the signals ${awaits.map(quoted).join(', ')}`)
  if (error !== undefined) lines.push(`error: ${oneLine(reasonOf(error))}`)
  if (status === 'done') lines.push(`value: ${inspect(value, { depth: 6 })}`)
  stdout.write(`${lines.join('\n')}\n`)
  const rows = state.steps.map(
    ({ key, child, status: of, startedAt: begun, at, failures, dueAt, error: failed }) => [
      ...[oneLine(child === undefined ? key : `${key} ${child}`), of, at.toISOString()],
      begun === undefined ? '-' : durationText(at.getTime() - begun.getTime()),
      ...[String(failures), dueAt?.toISOString() ?? '-'],
      failed === undefined ? '-' : oneLine(reasonOf(failed)).slice(0, REASON_CHARS_MAX),
    ],
  )
  writeTable(stdout, ['STEP', 'STATE', 'AT', 'TOOK', 'FAILED', 'DUE', 'ERROR'], rows)
  return ExitCode.ok
}

function jsonOf(state: RunState, value: unknown): string {
  const errorIn = <With extends { readonly error: unknown }>(of: With) => ({
    ...of,
    error: of.error === undefined ? undefined : errorForJson(of.error),
  })
  return jsonWith({ ...errorIn(state), steps: state.steps.map(errorIn) }, 'value', value)
}
