/**
 * The calling thread as a zone.
 *
 * Code that takes a zone works with this one too, without a hop: functions are called here, in a microtask of
 * their own, with the caller's own arguments. Nothing is copied and captured variables are allowed, so a
 * program that relies on that does not run elsewhere. Only the initial sum of a `reduce` is copied for each
 * chunk, as the chunks share it here. There is no queue and no worker, hence no limit; closing does nothing.
 */
import {
  callerFile,
  codeNumber,
  functionByNumber,
  isRefusal,
  moduleFunctionNumber,
  processFrame,
  readFrame,
} from '../../transport/internal.ts'
import { unwatch, watch } from '../../base/index.ts'
import { ZoneError } from '../errors.ts'
import type { AnyZone, BroadcastOptions, ModuleOptions } from './any-zone.ts'
import {
  OF_BROADCAST,
  ONLY_SIGNAL,
  ONLY_TIMEOUT,
  TIMEOUT_AND_FROM,
  WITH_FROM,
  argumentsOf,
  checkModule,
  exportOf,
  notRunnable,
  optionsOf,
} from './arguments.ts'
import { limited } from './limited-items.ts'
import { type Beginnable, type LimitableZone, limitedZone } from './limited-zone.ts'
import { moduleCalls } from './module-calls.ts'
import { Result } from '../ground/result.ts'
import type { Spreader } from '../parallel/engine.ts'
import { AHEAD, wrong } from '../ground/settings.ts'
import { Spread } from './spread.ts'
import { type ModuleCalls, Task, currentTask, useTrackerOnce } from '../ground/task.ts'
import { type CallLimits, NO_LIMITS, type TaskOptions, leftAlone } from '../call/call.ts'
import { containsStreams } from '../call/streamed.ts'
import type { Begun } from '../call/submitter.ts'
import { NO_TIMES, OwnTimes, type ZoneStats } from '../ground/stats.ts'
import { thisCarrier } from '../context/carrier.ts'
import type { CallRecord } from '../ground/record.ts'
import { NOTHING_TAKEN, takenFor } from '../call/send.ts'
import { publish } from '../ground/events.ts'
import { here } from '../ground/current.ts'

type AnyFunction = (this: Task, ...args: unknown[]) => unknown

/** The id that no other zone can have. */
export const NODE_ID = 'node'
/** The id of the main thread as a zone, in all threads. */
export const MAIN_ID = 'corespun.main'
/** How long chunks run one after the other before the loop has a turn, in ms. */
const TURN_MS = 8

/** How long the clean-up of a stream that its reader has left is waited for. */
const GRACE_MS = 1000

export class NodeZone extends Spread implements LimitableZone {
  readonly id: string
  readonly #times = new OwnTimes()
  #running = 0
  #ended = 0
  #failed = 0
  /** The loop's next turn, and when the first chunk before it began. */
  #turn: Promise<void> | undefined
  #turnBegunMs = 0
  protected readonly spreader: Spreader = {
    id: NODE_ID,
    isHere: true,
    isIsolated: false,
    workersMax: 1,
    own: copied,
    // It never refuses, and nothing is written.
    capacity: undefined,
    sentBytes: () => 0,
    graceMs: GRACE_MS,
    ahead: AHEAD,
    execute: async (module, name, args, options, begun) => {
      const fn = await exported(module, name, '')
      await this.#nextTurn()
      return this.#result(fn, args, options, { begun, expired: options.expired })
    },
  }

  constructor(id = NODE_ID) {
    super()
    this.id = id
  }

  async run(fn: unknown, ...args: unknown[]): Promise<never> {
    if (typeof fn !== 'function') throw notRunnable(fn)
    await undefined
    return (await (here.carrier === undefined
      ? this.#call(fn as AnyFunction, args, nodeTask(undefined))
      : this.#limited(fn as AnyFunction, args, NO_LIMITS))) as never
  }

  async runLimited(fn: unknown, args: readonly unknown[], limits: CallLimits): Promise<never> {
    if (typeof fn !== 'function') throw notRunnable(fn)
    return (await this.#limited(fn as AnyFunction, args, limits)) as never
  }

  begin(
    what: Beginnable,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    limits: CallLimits = NO_LIMITS,
  ): (why?: unknown) => void {
    let cancel: ((why: unknown) => void) | undefined
    let reason: { readonly why: unknown } | undefined
    const begun: Begun = (next) => {
      cancel = next
      if (reason !== undefined) next(reason.why)
    }
    const call = (fn: AnyFunction): Promise<unknown> => this.#limited(fn, args, limits, { begun })
    const ended =
      typeof what === 'function'
        ? call(what as AnyFunction)
        : exported(what.module, what.name, '').then((fn) => call(fn))
    ended.then(
      (value) => reason ?? resolve(value),
      (error: unknown) => reason ?? reject(error),
    )
    return (why = leftAlone()) => {
      reason ??= { why }
      cancel?.(why)
    }
  }

  async execute(...given: unknown[]): Promise<never> {
    const [what] = given
    if (typeof what === 'function') {
      const args = argumentsOf('zone.execute()', given[1])
      return (await this.#result(what as AnyFunction, args, optionsOf('zone.execute()', given[2]))) as never
    }
    const caller = callerFile(this.execute)
    const args = argumentsOf('zone.execute()', given[2])
    const options = optionsOf('zone.execute()', given[3], WITH_FROM)
    const fn = await exported(what, given[1], options.from ?? caller)
    return (await this.#result(fn, args, options)) as never
  }

  module<Module>(url: string | URL, options?: ModuleOptions): ModuleCalls<Module> {
    checkModule('zone.module(): the module', 'a URL, a path or the name of a package', url)
    const limits = optionsOf('zone.module()', options, WITH_FROM)
    const from = limits.from ?? callerFile(this.module)
    return moduleCalls(async (name, args) => this.#limited(await exported(url, name, from), args, limits))
  }

  async broadcast(what: unknown, args?: unknown, options?: BroadcastOptions): Promise<void> {
    const caller = callerFile(this.broadcast)
    const limits = optionsOf('zone.broadcast()', options, OF_BROADCAST)
    const fn = codeOrFunction(what, limits.from ?? caller)
    const late = (timeoutMs: number): ZoneError =>
      new ZoneError('BROADCAST_TIMEOUT', { zone: this.id, timeoutMs })
    await this.#limited(fn, argumentsOf('zone.broadcast()', args), limits, { late })
  }

  /** Does not wait for a promise that the function returns; a timeout cannot stop it. */
  broadcastSync(what: unknown, args?: unknown, options?: BroadcastOptions): void {
    const { from } = optionsOf('zone.broadcastSync()', options, TIMEOUT_AND_FROM)
    const fn = codeOrFunction(what, from ?? callerFile(this.broadcastSync))
    fn.apply(nodeTask(here.carrier?.record()), [...argumentsOf('zone.broadcastSync()', args)])
  }

  with(options: TaskOptions): AnyZone {
    return limitedZone(this, options)
  }

  /** Nothing waits here, so no waiting time is measured. */
  stats(): ZoneStats {
    const [running, failed] = [this.#running, this.#failed]
    const counts = { waiting: 0, running, done: this.#ended - failed, failed, stolen: 0, wakeUps: 0 }
    const times = {
      utilisation: this.#times.utilisation(running),
      waitUs: NO_TIMES,
      runUs: this.#times.now(),
    }
    const byWorker = [{ worker: this.id, ...counts, ...times }]
    const others = { waitingBytes: 0, ended: this.#ended, died: 0, errors: 0, workers: 1, asleep: 0 }
    const stats: ZoneStats = { ...counts, ...others, ...times, byWorker }
    publish.zoneStats(this.id, stats)
    return stats
  }

  async ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    const { signal } = optionsOf('zone.ready()', options, ONLY_SIGNAL)
    signal?.throwIfAborted()
  }

  async close(options?: { readonly timeoutMs?: number | undefined }): Promise<void> {
    optionsOf('zone.close()', options, ONLY_TIMEOUT)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #call(fn: AnyFunction, args: readonly unknown[], task: Task): Promise<unknown> {
    const begunMs = this.#times.begun(this.#running++)
    try {
      const cpu = task.record?.cpu
      const called = (): unknown => fn.apply(task, [...args])
      const body = cpu === undefined ? called : (): unknown => cpu.meter.task(cpu, false, called)
      const tracing = here.carrier?.tracing
      if (tracing === undefined) return await useTrackerOnce(task, body)
      return await useTrackerOnce(task, () => tracing.run(task, fn.name, task.record?.carried?.trace, body))
    } catch (error) {
      this.#failed++
      throw error
    } finally {
      this.#ended++
      this.#times.ended(begunMs, --this.#running)
    }
  }

  /** The turn to wait for: chunks follow each other in microtasks, which timers and I/O wait for. */
  #nextTurn(): Promise<void> | undefined {
    if (this.#turn !== undefined)
      return performance.now() - this.#turnBegunMs > TURN_MS ? this.#turn : undefined
    this.#turnBegunMs = performance.now()
    this.#turn = new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = undefined
        resolve()
      })
    })
    return undefined
  }

  async #result(
    fn: AnyFunction,
    args: readonly unknown[],
    options: CallLimits,
    how: LimitedHow = {},
  ): Promise<Result> {
    const value = await this.#limited(fn, args, options, how)
    try {
      return new Result(processFrame(value))
    } catch (error) {
      if (!isRefusal(error) || !(await containsStreams(value))) throw error
      return Result.of(value)
    }
  }

  #limited(
    fn: AnyFunction,
    args: readonly unknown[],
    given: CallLimits,
    how: LimitedHow = {},
  ): Promise<unknown> {
    const { signal } = given
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const { record, timeoutMs, isInherited } = takenFor(given) ?? NOTHING_TAKEN
    if (isInherited && timeoutMs === 0) {
      const facts = { zone: this.id, timeoutMs, started: false, inherited: true } as const
      return Promise.reject(how.late?.(timeoutMs) ?? new ZoneError('TASK_TIMEOUT', facts))
    }
    const task = nodeTask(record)
    return new Promise((resolve, reject) => {
      let isCancelled = false
      let items: { fail(error: unknown): void } | undefined
      const fail = (error: unknown): void => {
        reject(error)
        items?.fail(error)
      }
      const cancel = (why: unknown): void => {
        isCancelled = true
        task.abandon(why)
        fail(why)
      }
      const aborted = (): void => cancel(signal?.reason)
      const late = (): void => {
        task.abandon(new DOMException(`The task did not end within ${timeoutMs} ms`, 'TimeoutError'))
        how.expired?.()
        const ms = timeoutMs ?? 0
        const error = how.late?.(ms)
        const facts = { zone: this.id, timeoutMs: ms, started: true }
        fail(error ?? new ZoneError('TASK_TIMEOUT', isInherited ? { ...facts, inherited: true } : facts))
      }
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs)
      if (signal !== undefined) watch(signal, aborted)
      how.begun?.(cancel)
      const release = (): void => {
        clearTimeout(timer)
        if (signal !== undefined) unwatch(signal, aborted)
      }
      queueMicrotask(() => {
        if (isCancelled) return release()
        const called = (value: unknown): void => {
          const isLimited = timer !== undefined || signal !== undefined
          const found = isLimited ? limited(value, release) : undefined
          if (found === undefined) release()
          items = found
          resolve(found === undefined ? value : found.value)
        }
        this.#call(fn, args, task).then(called, (error: unknown) => {
          release()
          reject(error)
        })
      })
    })
  }
}

interface LimitedHow {
  readonly begun?: Begun | undefined
  /** The error after `timeoutMs`; that of a task by default. */
  readonly late?: (timeoutMs: number) => ZoneError
  readonly expired?: (() => void) | undefined
}

function codeOrFunction(what: unknown, file: string): AnyFunction {
  if (typeof what === 'function') return what as AnyFunction
  if (typeof what !== 'string')
    throw wrong('zone.broadcast(): the first argument', 'a function or code', what)
  return functionByNumber(codeNumber(what, file)) as AnyFunction
}

/** The initial sum of a chunk of `reduce`, which elsewhere travels and so is one of its own. */
function copied(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  const frame = processFrame(value)
  return readFrame(frame, 0, frame.length)
}

async function exported(module: unknown, name: unknown, from: string): Promise<AnyFunction> {
  const [url, found] = exportOf(module, name)
  return (await functionByNumber(moduleFunctionNumber(url, found, from))) as AnyFunction
}

/** A task of this thread; in a worker its calls are as deep as those of the task that it is part of. */
function nodeTask(record: CallRecord | undefined): Task {
  const task = new Task(NODE_ID, NODE_ID, currentTask()?.depth)
  task.record = record?.cpu === undefined ? record : { ...record, cpu: record.cpu.part() }
  // Its own calls look for what it has left.
  if (record !== undefined) thisCarrier()
  return task
}
