/**
 * The options of a zone, checked once where they are received.
 *
 * Inside there are no optionals: `parseSettings` returns a complete, frozen record, and a wrong value is an
 * error that names the option and the received value. The record travels to the thread that starts the
 * workers as JSON, so everything in it is plain data.
 */
import {
  type Kind,
  TIMER_MS_MAX,
  anything,
  cores,
  flag,
  integer,
  oneOf,
  optionsOf,
  otherRuntime,
  refuser,
  valueOfKind,
} from '../../base/index.ts'
import { native } from '../../native/index.ts'
import { ZoneError } from '../errors.ts'
import { type HookSettings, type WorkerHook, hookOf } from './hooks.ts'

/** The scheduling policy of a zone: see `ZoneOptions.executor`. */
export type ExecutorName = 'fixed' | 'work-stealing' | 'blocking' | 'cached'

/** What a worker is: see `ZoneOptions.isolation`. */
type Isolation = 'thread' | 'process'

/**
 * How many workers a zone has, and when one is replaced: the option `workers` as an object.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const apart = zone.create('apart', { workers: { min: 1, max: 2, tasks: 1 } })
 * function count(): number {
 *   const worker = globalThis as { tasks?: number }
 *   worker.tasks = (worker.tasks ?? 0) + 1
 *   return worker.tasks
 * }
 * assert.deepEqual(await Promise.all([apart.run(count), apart.run(count)]), [1, 1])
 * await apart.close()
 * ```
 */
export interface WorkersOptions {
  /**
   * Workers at the start and always, 1 to 1024. Default: 1 if `max` is given, else as many as `max`; 0, which
   * is allowed there, for the executor `cached`, and 1 for `blocking`.
   */
  readonly min?: number
  /**
   * Most workers, `min` to 1024. The zone grows while tasks wait: for 10 ms, or 2 ms with `blocking` and
   * `cached`. Default: the cores that this process may use, its CPU quota included, or 64 with `blocking` and
   * `cached`; `min` if that is more. More than `min` is not for the executor `work-stealing`.
   */
  readonly max?: number
  /** How long a worker beyond `min` idles before it leaves, in ms. Default 60,000. */
  readonly idleMs?: number
  /**
   * Tasks after which another worker replaces one, 1 or more: 1 runs every task in a worker of its own. When
   * the last tenth begins the next worker is prepared, `setup` included; with 1 at once. A worker that has
   * begun so many begins only what its tasks call and wait for. Default: any number.
   */
  readonly tasks?: number
  /**
   * Megabytes of used JavaScript heap, garbage included, from which on another worker replaces one between
   * its tasks, 1 or more. It runs tasks until that one is set up. Default: no limit; see `heapMbMax` for what
   * ends a worker.
   */
  readonly heapMb?: number
}

/** The options of `zone.create` and `zone.getOrCreate`. Every limit of a zone is here. */
export interface ZoneOptions {
  /**
   * How work meets the workers. `fixed`, the default: one queue, first in first out. `work-stealing`: what
   * tasks fork stays with their worker, and idle workers steal it. `blocking`: for tasks that block their
   * thread; grows to 64 workers while tasks wait. `cached`: grows on demand from none, and an idle worker
   * leaves. `workers` sets how far they grow.
   */
  readonly executor?: ExecutorName
  /**
   * Workers, 1 to 1024: a number that does not change with `fixed` and `work-stealing`, and the fewest of
   * `blocking` and `cached`; or bounds, and when a worker is replaced. Default: one for each core that this
   * process may use; 1 to 64 for `blocking`; 0 to 64 for `cached`.
   */
  readonly workers?: number | WorkersOptions
  /** Most tasks accepted and not started. Default 1,000,000. A full zone refuses with `ZONE_FULL`. */
  readonly tasksMax?: number
  /**
   * Most tasks of one `tenant` accepted and not started, 1 or more, so that no tenant can fill the zone. A
   * further one is refused with `ZONE_TENANT_FULL`. Calls without a tenant are not counted. Default: no limit
   * but `tasksMax`.
   */
  readonly tasksPerTenantMax?: number
  /**
   * Most bytes of all arguments accepted and not started, memory given away by `move` included; and, counted
   * apart, of all broadcasts kept for replay. Default 1 GiB. One task may have 256 MiB of them, memory given
   * away apart, or a quarter if that is more, up to 1 GiB.
   */
  readonly queueBytesMax?: number
  /**
   * Tasks that one worker may have begun and not ended; more than 1 lets asynchronous ones overlap. Default
   * 1. A task that waits for a call to a zone, or whose stream waits, does not count: see
   * `waitingPerWorkerMax`.
   */
  readonly tasksPerWorkerMax?: number
  /**
   * Tasks that one worker may begin beyond `tasksPerWorkerMax`, one for each call to any zone that its tasks
   * wait for, and for each task whose stream waits for items or its reader, 0 to 65,536. Default 1024. With
   * all of them begun the worker still begins tasks that are deeper than those it runs (called by a task that
   * a task called, and so on), so that calls which lead back to it never wait for each other.
   */
  readonly waitingPerWorkerMax?: number
  /**
   * Longest time in µs for which a worker or a caller looks for the next arrival before it sleeps, while that
   * pays and a core is free. 0 turns it off. Default 50, most 1000.
   */
  readonly spinUs?: number
  /**
   * How much the workers yield to all other threads of the machine, 0 to 19, in the steps of Unix's nice.
   * Default 0; 3 for `zone.cpu`, so that threads which serve wait less. Beside busy threads of other
   * programs a worker receives half of its fair share of a core at 5, and a fourteenth at 19 (Linux).
   * macOS and Windows have two steps: 1 to 14 or 9, and beyond.
   */
  readonly nice?: number
  /**
   * How long a task that was cancelled may go on before its worker is replaced, in ms. Default 1000. What
   * else runs on that worker ends with it.
   */
  readonly graceMs?: number
  /** How long `close` waits for accepted tasks before it ends the workers, in ms. Default 30,000. */
  readonly closeMs?: number
  /**
   * Runs once in each worker before its first task, also in each that replaces another: a function that can
   * be sent, or a module whose export `setup` it is. May be asynchronous. Tasks find what it returns by
   * `workerState()`. A worker whose setup fails ends; after three in a row the calls to the zone reject with
   * `SETUP_FAILED`. It may call other zones, not its own. Default: none.
   */
  readonly setup?: WorkerHook<[]>
  /**
   * Runs once in each worker that leaves, with what `setup` returned: when the zone closes, and when an idle
   * worker is released. Not in a worker that dies or is ended, nor at the end of the process. A function that
   * can be sent, or a module whose export `teardown` it is. Errors go to `onError`. Default: none.
   */
  readonly teardown?: WorkerHook<[state: never]>
  /** How long `setup` and `teardown` may each take in a worker, in ms; then it ends. Default 30,000. */
  readonly hookMs?: number
  /** Most megabytes of a worker's JavaScript heap. Default: Node's. */
  readonly heapMbMax?: number
  /**
   * What a worker is. `'thread'`, the default; or `'process'`, for code that may crash or exhaust the memory:
   * its end is the end of one worker. Processes share no memory with this one: not what is moved or shared,
   * no stores, locks and signals as arguments. A zone is there its worker alone: what a task calls there runs
   * in its process. Not with the executor `work-stealing`, nor on Windows.
   */
  readonly isolation?: 'thread' | 'process'
  /**
   * Most megabytes that the process of a worker may allocate beyond what Node has when it starts, stacks of
   * threads included, at least 64. Only with `isolation: 'process'`, and on Linux. Default: no limit.
   */
  readonly memoryMbMax?: number
  /**
   * Take the caller's stack at every call, for some 10 µs each, so that errors of tasks always show it.
   * Default false: they show it where the call is awaited when it fails.
   */
  readonly callStacks?: boolean
  /** Node's options for the workers, such as `--import`. Default: those of the thread that starts them. */
  readonly execArgv?: readonly string[]
  /** The workers' environment variables. Default: a copy of those of the thread that starts them. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Whether the zone closes, as by `close()`, when no thread but its own workers has a reference to it or
   * waits for a call: when the garbage collectors of all threads that had one have found that, which may be
   * late, and never in a thread that idles. What its workers do beside tasks does not keep it. A zone that is
   * on its way to another thread does not count: keep a reference until it has arrived. Default false.
   */
  readonly weak?: boolean
}

/** The option `workers`, complete. */
interface WorkersSettings {
  /** The fewest. */
  readonly workers: number
  readonly workersMax: number
  readonly idleMs: number
  /** Tasks of one worker; `null`: any number. */
  readonly workerTasksMax: number | null
  /** `null`: no limit. */
  readonly workerHeapMbMax: number | null
}

/**
 * The complete, frozen settings of a zone: each option of {@link ZoneOptions} with its value, and the limits
 * that no option sets. `null`: Node's default.
 */
export type ZoneSettings = {
  readonly [Name in Exclude<keyof ZoneOptions, 'workers'>]: Name extends 'setup' | 'teardown'
    ? HookSettings | null
    : | Required<ZoneOptions>[Name]
      | (Name extends 'tasksPerTenantMax' | 'heapMbMax' | 'memoryMbMax' | 'execArgv' | 'env' ? null : never)
} & WorkersSettings & {
    readonly [
      Name in 'taskBytesMax' | 'broadcastsMax' | 'callDepthMax' | 'aheadMax' | 'aheadBytesMax'
    ]: number
  }

const MEBI = 1024 * 1024
const WORKERS_MOST = 1024

/** How far streams run ahead, unless an option of `stream` differs. */
export const AHEAD = Object.freeze({ aheadMax: 4096, aheadBytesMax: MEBI })

/**
 * The limits that no option sets. Each broadcast runs again on each worker that joins: with 10,000, a value
 * that changes often belongs in a store. A recursion that ends is not so deep, and one without end stops
 * before its waiting tasks exhaust the memory.
 */
const FIXED = { broadcastsMax: 10_000, callDepthMax: 4096, ...AHEAD }

/** Workers of each executor: the fewest, and the default maximum of those that grow by default. */
const EXECUTORS: Readonly<Record<ExecutorName, { least: number; max?: number }>> = {
  fixed: { least: 1 },
  'work-stealing': { least: 1 },
  blocking: { least: 1, max: 64 },
  cached: { least: 0, max: 64 },
}

const TEXTS: Kind<readonly string[] | null> = {
  expected: 'an array of strings',
  accepts: (value) => Array.isArray(value) && areTexts(value),
  default: null,
}
const TEXT_RECORD: Kind<Readonly<Record<string, string>> | null> = {
  expected: 'an object of strings',
  accepts: (value) => value !== null && typeof value === 'object' && areTexts(Object.values(value)),
  default: null,
}
const KINDS = {
  executor: oneOf<ExecutorName>(Object.keys(EXECUTORS) as ExecutorName[], 'fixed'),
  workers: anything,
  tasksMax: integer(1, 2 ** 31 - 1, 1_000_000),
  tasksPerTenantMax: integer(1, 2 ** 31 - 1, null),
  queueBytesMax: integer(0, 2 ** 40, 1024 * MEBI),
  tasksPerWorkerMax: integer(1, 65_536, 1),
  waitingPerWorkerMax: integer(0, 65_536, 1024),
  spinUs: integer(0, 1000, 50),
  nice: integer(0, 19, 0),
  graceMs: integer(0, TIMER_MS_MAX, 1000),
  closeMs: integer(0, TIMER_MS_MAX, 30_000),
  setup: anything,
  teardown: anything,
  hookMs: integer(1, TIMER_MS_MAX, 30_000),
  heapMbMax: integer(4, 2 ** 20, null),
  isolation: oneOf<Isolation>(['thread', 'process'], 'thread'),
  memoryMbMax: integer(64, 2 ** 20, null),
  callStacks: flag(false),
  execArgv: TEXTS,
  env: TEXT_RECORD,
  weak: flag(false),
}

const FIXED_WORKERS = { idleMs: 60_000, tasks: null, heapMb: null }
const WORKERS_KINDS = {
  min: anything,
  max: anything,
  idleMs: integer(1, TIMER_MS_MAX, 60_000),
  tasks: integer(1, 2 ** 31 - 1, null),
  heapMb: integer(1, 2 ** 20, null),
}

/**
 * @param call The function that takes the options, as an error names it.
 * @param above The function that the program has called, for modules that are named relative to its file.
 * @throws {ZoneError} `ZONE_ARGUMENT`.
 * @throws {FunctionError} for a `setup` or `teardown` that cannot be sent.
 */
export function parseSettings(
  given: unknown,
  call = 'zone.create()',
  above: Function = parseSettings,
): ZoneSettings {
  const options = optionsOf(given ?? null, KINDS, wrong, call)
  const { executor, workers, queueBytesMax, execArgv, env } = options
  checkIsolation(call, options)
  return Object.freeze({
    ...options,
    ...FIXED,
    ...workersOf(call, executor, workers),
    taskBytesMax: taskBytesMaxOf(queueBytesMax),
    setup: hookOf([call, 'setup'], options.setup, above, wrong),
    teardown: hookOf([call, 'teardown'], options.teardown, above, wrong),
    execArgv: execArgv && Object.freeze([...execArgv]),
    env: env && Object.freeze({ ...env }),
  })
}

/** The cores that the process may use, of a control group those of its quota, which Node 20 does not read. */
const allowedCores = (): number => Math.min(cores(), native.cores())

/** @throws {ZoneError} `ZONE_ARGUMENT`. */
function workersOf(call: string, executor: ExecutorName, given: unknown): WorkersSettings {
  const { least, max: grown } = EXECUTORS[executor]
  const isCount = given === undefined || typeof given !== 'object' || given === null
  const asked = isCount ? undefined : optionsOf(given, WORKERS_KINDS, wrong, call, 'workers')
  const { idleMs, tasks: workerTasksMax, heapMb: workerHeapMbMax } = asked ?? FIXED_WORKERS
  const count = (name: string, value: unknown, from: number, otherwise: () => number): number =>
    value === undefined
      ? otherwise()
      : valueOfKind<number>(call, name, value, integer(from, WORKERS_MOST, from), wrong)
  const fewest = (): number => {
    if (grown !== undefined) return least
    if (asked === undefined) return cores()
    return asked.max === undefined ? allowedCores() : least
  }
  const workers = count(isCount ? 'workers' : 'workers.min', isCount ? given : asked?.min, least, fewest)
  const most = (): number => {
    if (grown !== undefined) return Math.max(grown, workers)
    return asked?.min === undefined || executor === 'work-stealing'
      ? workers
      : Math.max(workers, allowedCores())
  }
  const workersMax = count('workers.max', asked?.max, Math.max(1, workers), most)
  if (workersMax > workers && executor === 'work-stealing')
    throw wrong(`${call}: workers.max`, "another executor than 'work-stealing'", workersMax, {
      verb: 'needs',
    })
  return { workers, workersMax, idleMs, workerTasksMax, workerHeapMbMax }
}

/**
 * The options with what `workers` contains under the names of the settings, to compare them with those of a
 * zone.
 */
export function flatOptions({ workers, ...options }: ZoneOptions): object {
  if (typeof workers !== 'object') return { ...options, workers }
  const { min, max, idleMs, tasks, heapMb } = workers
  return { ...options, workers: min, workersMax: max, idleMs, workerTasksMax: tasks, workerHeapMbMax: heapMb }
}

/** So much that one task does not fill the queue of many, and that whoever has larger ones can raise it. */
function taskBytesMaxOf(queueBytesMax: number): number {
  const usual = Math.min(queueBytesMax, 256 * MEBI)
  return Math.min(1024 * MEBI, Math.max(usual, Math.floor(queueBytesMax / 4)))
}

/** @throws {ZoneError} `ZONE_ARGUMENT`, `ISOLATION_UNSUPPORTED`. */
function checkIsolation(
  call: string,
  { isolation, executor, memoryMbMax }: Pick<ZoneSettings, 'isolation' | 'executor' | 'memoryMbMax'>,
): void {
  if (isolation === 'thread') {
    const expected = "isolation: 'process': the threads of a process share its memory"
    if (memoryMbMax !== null) throw wrong(`${call}: memoryMbMax`, expected, memoryMbMax, { verb: 'needs' })
    return
  }
  if (executor === 'work-stealing')
    throw wrong(`${call}: isolation`, "another executor than 'work-stealing'", isolation, { verb: 'needs' })
  if ((native as { readonly linkOpen: unknown }).linkOpen === undefined)
    throw new ZoneError('ISOLATION_UNSUPPORTED', { platform: process.platform, runtime: otherRuntime() })
  if (memoryMbMax !== null && process.platform !== 'linux')
    throw wrong(`${call}: memoryMbMax`, 'Linux', memoryMbMax, { verb: 'needs' })
}

/** Checks a zone's name. @throws {ZoneError} `ZONE_ARGUMENT`. */
export function parseId(call: string, id: unknown): string {
  if (typeof id !== 'string' || id === '' || id.length > 256 || id.includes('\0')) {
    throw wrong(`${call}: id`, 'a string of 1 to 256 characters without NUL', id)
  }
  return id
}

/** @throws {ZoneError} `ZONE_ARGUMENT` for what needs workers that stay. */
export function checkFixed(what: string, { workers, workersMax, executor }: ZoneSettings): void {
  const expected = `a zone whose number of workers does not change; it has ${workers} to ${workersMax}`
  if (workersMax > workers) throw wrong(what, expected, executor, { verb: 'needs' })
}

function areTexts(values: readonly unknown[]): boolean {
  return values.every((text) => typeof text === 'string')
}

export const wrong = refuser((facts) => new ZoneError('ZONE_ARGUMENT', facts))
