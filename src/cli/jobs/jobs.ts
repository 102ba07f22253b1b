/**
 * `corespun jobs`: the jobs of an engine, listed, shown, run anew, forgotten and paused.
 *
 * The methods of `fleet.jobs(name)` do it; what is left here is text and JSON.
 */
import { inspect } from 'node:util'
import { oneLine, reasonOf } from '../../base/index.ts'
import type { Fleet, JobInfo, Jobs, ListedJob } from '../../fleet/index.ts'
import { ExitCode } from '../errors.ts'
import {
  REASON_CHARS_MAX,
  connected,
  counted,
  each,
  errorForJson,
  jsonWith,
  listPages,
  missed,
  quoted,
  writeRows,
} from '../fleet/engine.ts'
import type { CommandContext } from '../run/run.ts'
import type { JobsWords } from './jobs-arguments.ts'

type Of<Verb extends JobsWords['verb']> = Extract<JobsWords, { readonly verb: Verb }>

/** What each verb has. */
interface Doing {
  readonly jobs: Jobs<unknown>
  readonly context: CommandContext
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal
}

/**
 * Do it, and print what was done.
 * @returns The exit code: 1 for a zone without a queue, or a key not in the state that the verb needs.
 * @throws {FleetError} When no server can be reached, or the engine refuses.
 * @throws {CliError} `CLI_USAGE` for a file that does not exist.
 */
export async function jobs(words: JobsWords, context: CommandContext): Promise<number> {
  return connected(words.connection, 'corespun jobs', context, async (far, signal) => {
    if (words.verb === 'zones') return zones(far, words, context)
    const { zone } = words
    // Looking into a queue makes it, of NATS with one replica. Who may not list them may not make any.
    const queues = await far.queues().catch(() => undefined)
    if (queues?.some((queue) => queue.kind === 'jobs' && queue.zone === zone) === false)
      return missed(context, `the zone ${quoted(zone)} has no queue of jobs here`)
    return done(words, { jobs: far.jobs(zone), context, signal })
  })
}

function done(words: Exclude<JobsWords, Of<'zones'>>, doing: Doing): Promise<number> {
  switch (words.verb) {
    case 'list':
      return list(words, doing)
    case 'show':
      return show(words, doing)
    case 'retry':
      return retry(words, doing)
    case 'cancel':
      return cancel(words, doing)
    case 'forget':
      return forget(words, doing)
    case 'pause':
    case 'resume':
      return pause(words, doing)
  }
}

/** How many jobs each zone has. */
async function zones(far: Fleet, { json }: JobsWords, context: CommandContext): Promise<number> {
  const all = []
  for (const { kind, zone } of await far.queues()) {
    if (kind === 'runs') continue // of a definition
    const jobs = far.jobs(zone)
    all.push({ zone, isPaused: await jobs.isPaused(), ...(await jobs.counts()) })
  }
  return writeRows(context, json, all, {
    head: ['ZONE', 'STATE', 'WAITING', 'RUNNING', 'SCHEDULED', 'DEAD', 'ENDED'],
    cells: ({ zone, isPaused, waiting, running, scheduled, dead, ended }) => [
      zone,
      isPaused ? 'paused' : '-',
      ...[waiting, running, scheduled, dead, ended].map(String),
    ],
  })
}

function list(words: Of<'list'>, { jobs, context, signal }: Doing): Promise<number> {
  const head = ['KEY', 'STATE', 'FUNCTION', 'FAILED', 'DUE', 'ERROR']
  return listPages(context, words, { head, cells, json: jsonOf }, async (after, jobsMax) => {
    const page = await jobs.list({ state: words.state, after, jobsMax, signal })
    return [page.jobs, page.next]
  })
}

async function show({ zone, key, json }: Of<'show'>, { jobs, context }: Doing): Promise<number> {
  const job = await jobs.get(key)
  if (job === undefined) return missed(context, `the zone ${quoted(zone)} has no job ${quoted(key)}`)
  if (json) context.stdout.write(`${jsonOf(job)}\n`)
  else {
    const known = Object.fromEntries(Object.entries(job).filter(([, value]) => value !== undefined))
    context.stdout.write(`${inspect(known, { depth: 6 })}\n`)
  }
  return ExitCode.ok
}

async function retry({ keys, all, zone }: Of<'retry'>, { jobs, context, signal }: Doing): Promise<number> {
  if (all) return counted(context, await jobs.againAll({ signal }), 'job', 'run anew')
  const problem = `not a dead job of the zone ${quoted(zone)}`
  return each(context, keys, { noun: 'job', what: 'run anew', problem }, (key) => jobs.again(key))
}

async function cancel({ keys, state, zone }: Of<'cancel'>, doing: Doing): Promise<number> {
  const { jobs, context, signal } = doing
  if (state !== undefined)
    return counted(context, await jobs.cancelAll(state, { signal }), 'job', 'cancelled')
  const problem = `not a job of the zone ${quoted(zone)} that waits or runs`
  return each(context, keys, { noun: 'job', what: 'cancelled', problem }, (key) => jobs.cancel(key))
}

async function forget({ keys, state, zone }: Of<'forget'>, doing: Doing): Promise<number> {
  const { jobs, context, signal } = doing
  if (state !== undefined)
    return counted(context, await jobs.forgetAll(state, { signal }), 'job', 'forgotten')
  const problem = `not a job of the zone ${quoted(zone)} that has ended`
  return each(context, keys, { noun: 'job', what: 'forgotten', problem }, (key) => jobs.forget(key))
}

async function pause({ verb, zone }: Of<'pause' | 'resume'>, { jobs, context }: Doing): Promise<number> {
  const isChanged = verb === 'pause' ? await jobs.pause() : await jobs.resume()
  const state = verb === 'pause' ? 'paused' : 'not paused'
  context.stdout.write(`the zone ${quoted(zone)} is ${state}${isChanged ? '' : ' already'}\n`)
  return ExitCode.ok
}

function cells({ key, status, name, failures, dueAt, errors }: ListedJob): string[] {
  const error = errors.length === 0 ? '-' : oneLine(reasonOf(errors.at(-1))).slice(0, REASON_CHARS_MAX)
  return [oneLine(key), status, name ?? '-', String(failures), dueAt?.toISOString() ?? '-', error]
}

const jsonOf = (job: JobInfo): string =>
  jsonWith({ ...job, errors: job.errors.map(errorForJson) }, 'progress', job.progress)
