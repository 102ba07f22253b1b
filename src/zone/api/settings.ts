/**
 * What a zone is made with, checked once at the door.
 *
 * Inside there are no optionals: `parseSettings` gives a complete, frozen record, and a wrong value is an
 * error that names the setting and what was received. The record travels to the thread that starts the
 * workers as JSON, so everything in it is plain data.
 */
import { availableParallelism } from 'node:os'
import { flag, ownOptions, refuser, valueOfKind } from '../../base/index.ts'
import { ZoneError } from '../errors.ts'

/** How work meets the workers of a zone. */
export type ExecutorName = 'fixed' | 'work-stealing' | 'blocking' | 'cached'

/** What a zone may be made with. Every limit is here. */
export interface ZoneSettings {
  /**
   * How work meets the workers. `fixed`, the default: n workers and one queue, first in first out.
   * `work-stealing`: what tasks fork stays with their worker, and idle workers steal it. `blocking`: for
   * tasks that block their thread; grows to `workersMax` while tasks wait. `cached`: grows on demand from
   * none, and an idle worker leaves after `idleMs`.
   */
  readonly executor?: ExecutorName
  /**
   * Workers at the start and always, 1 to 1024. Default: one for each core that this process may use; 1 for
   * `blocking`; 0, which is allowed there, for `cached`.
   */
  readonly workers?: number
  /** Most workers of `blocking` and `cached`, 1 to 1024. Default 64, or `workers` if that is more. */
  readonly workersMax?: number
  /**
   * How long a worker of `blocking` and `cached` beyond `workers` idles before it leaves, in ms. Default
   * 60,000.
   */
  readonly idleMs?: number
  /** Most tasks accepted and not started. Default 1,000,000. A full zone refuses with `ZONE_FULL`. */
  readonly tasksMax?: number
  /** Most bytes of one task's arguments, those of memory given away by `move` apart. Default 256 MiB. */
  readonly taskBytesMax?: number
  /**
   * Most bytes of all arguments accepted and not started, memory given away by `move` included; and, counted
   * apart, of all broadcasts kept for replay. Default 1 GiB.
   */
  readonly queueBytesMax?: number
  /** Most broadcasts kept for replay on workers that join later. Default 10,000. */
  readonly broadcastsMax?: number
  /**
   * Tasks that one worker may have begun and not ended; more than 1 lets asynchronous ones overlap. Default
   * 1. A task that waits for a call to a zone does not count: see `waitingPerWorkerMax`.
   */
  readonly tasksPerWorkerMax?: number
  /**
   * Tasks that one worker may begin beyond `tasksPerWorkerMax`, one for each call to any zone that its tasks
   * wait for, 0 to 65,536. Default 1024. With all of them begun the worker still begins tasks that are deeper
   * than those it runs (called by a task that a task called, and so on), so that calls which lead back to it
   * never wait for each other.
   */
  readonly waitingPerWorkerMax?: number
  /**
   * How deep calls may be nested: tasks that wait for one task, each for the next, through whichever zones, 1
   * to 1,000,000. Default 4096. A deeper call into this zone is refused with `ZONE_WAITS_TOO_DEEP`.
   */
  readonly callDepthMax?: number
  /**
   * Longest time in µs for which a worker or a caller looks for the next arrival before it sleeps, while that
   * pays and a core is free. 0 turns it off. Default 50, most 1000.
   */
  readonly spinUs?: number
  /**
   * How much the workers give way to all other threads of the machine, 0 to 19, in the steps of Unix's nice.
   * Default 0; 3 for `zone.cpu`, so that threads which serve wait less. Beside busy threads of other
   * programs a worker receives half of its fair share of a core at 5, and a fourteenth at 19. Linux only,
   * elsewhere without effect.
   */
  readonly nice?: number
  /**
   * How long a task that was cancelled may go on before its worker is replaced, in ms. Default 1000. What
   * else runs on that worker ends with it.
   */
  readonly graceMs?: number
  /** How long `close` waits for accepted tasks before it ends the workers, in ms. Default 30,000. */
  readonly closeMs?: number
  /** Most megabytes of a worker's JavaScript heap. Default: Node's. */
  readonly heapMbMax?: number
  /**
   * Take the caller's stack at every call, for some 10 µs each, so that errors of tasks always show it.
   * Default false: they show it where the call is awaited when it fails.
   */
  readonly callStacks?: boolean
  /** Node's options for the workers, such as `--import`. Default: those of the thread that starts them. */
  readonly execArgv?: readonly string[]
  /** The workers' environment variables. Default: a copy of those of the thread that starts them. */
  readonly env?: Readonly<Record<string, string>>
}

/** Complete settings: only what Node decides by itself may be absent. */
export interface Settings {
  readonly executor: ExecutorName
  readonly workers: number
  readonly workersMax: number
  readonly idleMs: number
  readonly tasksMax: number
  readonly taskBytesMax: number
  readonly queueBytesMax: number
  readonly broadcastsMax: number
  readonly tasksPerWorkerMax: number
  readonly waitingPerWorkerMax: number
  readonly callDepthMax: number
  readonly spinUs: number
  readonly nice: number
  readonly graceMs: number
  readonly closeMs: number
  readonly heapMbMax: number | null
  readonly callStacks: boolean
  readonly execArgv: readonly string[] | null
  readonly env: Readonly<Record<string, string>> | null
}

const MEBI = 1024 * 1024
const TIMER_MS_MAX = 2 ** 31 - 1

interface Range {
  readonly least: number
  readonly most: number
  readonly default: () => number
}

const NUMBERS = {
  idleMs: { least: 1, most: TIMER_MS_MAX, default: () => 60_000 },
  tasksMax: { least: 1, most: 2 ** 31 - 1, default: () => 1_000_000 },
  taskBytesMax: { least: 0, most: 2 ** 30, default: () => 256 * MEBI },
  queueBytesMax: { least: 0, most: 2 ** 40, default: () => 1024 * MEBI },
  broadcastsMax: { least: 0, most: 1_000_000, default: () => 10_000 },
  tasksPerWorkerMax: { least: 1, most: 65_536, default: () => 1 },
  waitingPerWorkerMax: { least: 0, most: 65_536, default: () => 1024 },
  callDepthMax: { least: 1, most: 1_000_000, default: () => 4096 },
  spinUs: { least: 0, most: 1000, default: () => 50 },
  nice: { least: 0, most: 19, default: () => 0 },
  graceMs: { least: 0, most: TIMER_MS_MAX, default: () => 1000 },
  closeMs: { least: 0, most: TIMER_MS_MAX, default: () => 30_000 },
} as const satisfies Record<string, Range>

const OTHERS = ['heapMbMax', 'callStacks', 'execArgv', 'env']
const WORKERS_MOST = 1024
/** Workers of each executor by default; the fewest; and the most by default, for those that grow. */
const EXECUTORS: Readonly<Record<ExecutorName, { default: () => number; least: number; max?: number }>> = {
  fixed: { default: availableParallelism, least: 1 },
  'work-stealing': { default: availableParallelism, least: 1 },
  blocking: { default: () => 1, least: 1, max: 64 },
  cached: { default: () => 0, least: 0, max: 64 },
}

/** Check `given` and fill in what is absent. @throws {ZoneError} `ZONE_SETTING`. */
export function parseSettings(given: unknown): Settings {
  const known = ['executor', 'workers', 'workersMax', ...Object.keys(NUMBERS), ...OTHERS]
  const fields: Record<string, unknown> = ownOptions(given ?? null, known, wrong, 'settings')
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS).map(([name, range]) => [name, numberIn(`settings.${name}`, fields[name], range)]),
  ) as Record<keyof typeof NUMBERS, number>
  const { heapMbMax, execArgv, env } = fields
  const callStacks = valueOfKind('settings.callStacks', fields['callStacks'], flag(false), wrong)
  return Object.freeze({
    ...parseWorkers(fields),
    ...numbers,
    heapMbMax:
      heapMbMax === undefined
        ? null
        : numberIn('settings.heapMbMax', heapMbMax, { least: 4, most: 2 ** 20, default: () => 0 }),
    callStacks,
    execArgv: execArgv === undefined ? null : texts('settings.execArgv', execArgv),
    env: env === undefined ? null : textRecord('settings.env', env),
  })
}

function parseWorkers(
  fields: Record<string, unknown>,
): Pick<Settings, 'executor' | 'workers' | 'workersMax'> {
  const { executor = 'fixed', workersMax: given } = fields
  const names = Object.keys(EXECUTORS) as ExecutorName[]
  if (!names.includes(executor as ExecutorName)) {
    throw wrong('settings.executor', `one of ${names.map((name) => `'${name}'`).join(', ')}`, executor)
  }
  const kind = EXECUTORS[executor as ExecutorName]
  const range = { least: kind.least, most: WORKERS_MOST, default: kind.default }
  const workers = numberIn('settings.workers', fields['workers'], range)
  const { max } = kind
  if (max === undefined) {
    for (const name of ['workersMax', 'idleMs']) {
      if (fields[name] === undefined) continue
      throw wrong(
        `settings.${name}`,
        `absent: the workers of '${String(executor)}' do not change`,
        fields[name],
      )
    }
    return { executor: executor as ExecutorName, workers, workersMax: workers }
  }
  const most = { least: Math.max(1, workers), most: WORKERS_MOST, default: () => Math.max(max, workers) }
  const workersMax = numberIn('settings.workersMax', given, most)
  return { executor: executor as ExecutorName, workers, workersMax }
}

/** Check a zone's name. @throws {ZoneError} `ZONE_SETTING`. */
export function parseId(id: unknown): string {
  if (typeof id !== 'string' || id === '' || id.length > 256 || id.includes('\0')) {
    throw wrong('the id of a zone', 'a string of 1 to 256 characters without NUL', id)
  }
  return id
}

/** Check a number of milliseconds that a timer can wait. @throws {ZoneError} `ZONE_SETTING`. */
export function parseMs(name: string, value: unknown): number {
  return numberIn(name, value, { least: 0, most: TIMER_MS_MAX, default: () => 0 }, false)
}

function numberIn(name: string, value: unknown, range: Range, whole = true): number {
  if (value === undefined) return range.default()
  const right = typeof value === 'number' && (whole ? Number.isInteger(value) : !Number.isNaN(value))
  if (!right || value < range.least || value > range.most) {
    throw wrong(name, `${whole ? 'an integer' : 'a number'} from ${range.least} to ${range.most}`, value)
  }
  return value
}

function texts(name: string, value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every((text) => typeof text === 'string'))
    throw wrong(name, 'an array of strings', value)
  return Object.freeze([...value])
}

function textRecord(name: string, value: unknown): Readonly<Record<string, string>> {
  const right =
    value !== null &&
    typeof value === 'object' &&
    Object.values(value).every((text) => typeof text === 'string')
  if (!right) throw wrong(name, 'an object of strings', value)
  return Object.freeze({ ...(value as Record<string, string>) })
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new ZoneError('ZONE_SETTING', facts))
