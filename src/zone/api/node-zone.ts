/**
 * The calling thread itself, with the API of a zone.
 *
 * Code that is given a zone works with this one too, without a hop: functions are called here, in a microtask
 * of their own, with the very arguments. So nothing is copied and captured variables are allowed; a program
 * that relies on that does not run elsewhere. Only the first sum of a `reduce` is copied, for each chunk, as
 * the chunks share it here. It has no queue and no workers, hence no limits; closing does nothing.
 */
import {
  callerFile,
  codeNumber,
  functionByNumber,
  moduleFunctionNumber,
  processFrame,
  readFrame,
} from '../../transport/internal.ts'
import { onAbort } from '../../base/index.ts'
import { ZoneError } from '../errors.ts'
import { Result } from './result.ts'
import { ONLY_SIGNAL, ONLY_TIMEOUT, argumentsOf, exportOf, optionsOf } from './arguments.ts'
import type { Begun, Spreader } from '../parallel/parallel.ts'
import { wrong } from './settings.ts'
import { Spread } from '../parallel/spread.ts'
import { type ModuleCalls, Task, type TaskFunction, currentTask, useTrackerOnce } from '../call/task.ts'
import type { CallOptions } from '../call/call.ts'
import { NO_TIMES, OwnTimes, type ZoneStats } from './stats.ts'
import { publish } from '../owner/events.ts'
import type { AnyZone } from './any-zone.ts'

type AnyFunction = (this: Task, ...args: unknown[]) => unknown

/** This thread with the methods of a zone: calls run here, in turn. */
export class NodeZone extends Spread implements AnyZone {
  /** The name that no other zone can have. */
  static readonly id = 'node'
  /** `node`. */
  readonly id = NodeZone.id
  readonly #times = new OwnTimes()
  #running = 0
  #ended = 0
  #failed = 0
  protected readonly spreader: Spreader = {
    id: undefined,
    workersMax: 1,
    own: copied,
    // It never refuses, and nothing is written.
    room: undefined,
    sentBytes: () => 0,
    execute: (module, name, args, options, begun) => this.#chunk(module, name, args, options, begun),
  }

  /**
   * Call a function here, soon. Rejects with what it throws.
   * @throws {ZoneError} (as a rejection) `ZONE_ARGUMENT` when it is no function.
   */
  async run<Args extends unknown[], Value>(
    fn: TaskFunction<Args, Value>,
    ...args: Args
  ): Promise<Awaited<Value>> {
    if (typeof fn !== 'function') throw wrong('zone.run(): the first argument', 'a function', fn)
    await undefined
    return (await this.#call(fn as unknown as AnyFunction, args, nodeTask())) as Awaited<Value>
  }

  /**
   * The same for a function or the export `name` of a module, with a deadline and a signal. A function that
   * never waits cannot be interrupted here; its caller's promise still settles when it should.
   */
  execute<Value>(
    fn: TaskFunction<[], Value>,
    args?: readonly [],
    options?: CallOptions,
  ): Promise<Result<Awaited<Value>>>
  execute<Args extends unknown[], Value>(
    fn: TaskFunction<Args, Value>,
    args: Readonly<Args>,
    options?: CallOptions,
  ): Promise<Result<Awaited<Value>>>
  execute(
    module: string | URL,
    name: string,
    args?: readonly unknown[],
    options?: CallOptions,
  ): Promise<Result>
  async execute(...given: unknown[]): Promise<Result> {
    const byName = typeof given[0] !== 'function'
    const from = byName ? callerFile(this.execute) : ''
    const args = argumentsOf('zone.execute()', given[byName ? 2 : 1])
    const options = optionsOf('zone.execute()', given[byName ? 3 : 2])
    const fn = byName ? await exported(given[0], given[1], from) : (given[0] as AnyFunction)
    return this.#result(fn, args, options)
  }

  /** The functions that a module exports, called here. */
  module<Module>(url: string | URL): ModuleCalls<Module> {
    const from = callerFile(this.module)
    return new Proxy(Object.create(null) as object, {
      get: (_, name) => {
        if (typeof name !== 'string' || name === 'then') return undefined
        return async (...args: unknown[]) => this.run(await exported(url, name, from), ...(args as never[]))
      },
    }) as ModuleCalls<Module>
  }

  /** Run a function or code here, once; with a deadline and a signal as `execute`. */
  broadcast(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: CallOptions,
  ): Promise<void>
  broadcast<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: CallOptions,
  ): Promise<void>
  async broadcast(what: unknown, args?: unknown, options?: CallOptions): Promise<void> {
    const fn = this.#codeOrFunction(what, callerFile(this.broadcast))
    const late = (timeoutMs: number): ZoneError =>
      new ZoneError('BROADCAST_TIMEOUT', { zone: this.id, timeoutMs })
    await this.#limited(fn, argumentsOf('zone.broadcast()', args), optionsOf('zone.broadcast()', options), {
      late,
    })
  }

  /** Run a function or code here, now. What it returns is not waited for; a deadline cannot stop it. */
  broadcastSync(
    what: string | TaskFunction<[], unknown>,
    args?: readonly [],
    options?: { readonly timeoutMs?: number },
  ): void
  broadcastSync<Args extends unknown[]>(
    what: TaskFunction<Args, unknown>,
    args: Readonly<Args>,
    options?: { readonly timeoutMs?: number },
  ): void
  broadcastSync(what: unknown, args?: unknown, options?: { readonly timeoutMs?: number }): void {
    optionsOf('zone.broadcastSync()', options, ONLY_TIMEOUT)
    const fn = this.#codeOrFunction(what, callerFile(this.broadcastSync))
    fn.apply(nodeTask(), [...argumentsOf('zone.broadcastSync()', args)])
  }

  /**
   * What this thread runs for the zone, told on `corespun.zone.stats` as well. It has no queue, so nothing
   * waits and no waiting is measured.
   */
  stats(): ZoneStats {
    const [running, failed] = [this.#running, this.#failed]
    const counts = { waiting: 0, running, done: this.#ended - failed, failed, stolen: 0, wakeUps: 0 }
    const times = {
      utilisation: this.#times.utilisation(running),
      waitUs: NO_TIMES,
      runUs: this.#times.told(),
    }
    const byWorker = [{ worker: this.id, ...counts, ...times }]
    const others = { waitingBytes: 0, ended: this.#ended, died: 0, errors: 0, workers: 1, asleep: 0 }
    const stats: ZoneStats = { ...counts, ...others, ...times, byWorker }
    publish.zoneStats(this.id, stats)
    return stats
  }

  /** Resolves at once, but for an aborted signal. */
  async ready(options?: { readonly signal?: AbortSignal }): Promise<void> {
    optionsOf('zone.ready()', options, ONLY_SIGNAL).signal?.throwIfAborted()
  }

  /** Does nothing: the thread goes on. */
  async close(options?: { readonly timeoutMs?: number }): Promise<void> {
    optionsOf('zone.close()', options, ONLY_TIMEOUT)
  }

  /** `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #codeOrFunction(what: unknown, file: string): AnyFunction {
    if (typeof what === 'function') return what as AnyFunction
    if (typeof what !== 'string')
      throw wrong('zone.broadcast(): the first argument', 'a function or code', what)
    return functionByNumber(codeNumber(what, file)) as AnyFunction
  }

  async #call(fn: AnyFunction, args: readonly unknown[], task: Task): Promise<unknown> {
    const begunMs = this.#times.begun(this.#running++)
    try {
      return await useTrackerOnce(task, () => fn.apply(task, [...args]))
    } catch (error) {
      this.#failed++
      throw error
    } finally {
      this.#ended++
      this.#times.ended(begunMs, --this.#running)
    }
  }

  /** `execute` of an export for a chunk. */
  async #chunk(
    module: URL,
    name: string,
    args: unknown[],
    options: CallOptions,
    begun: Begun,
  ): Promise<Result> {
    return this.#result(await exported(module, name, ''), args, options, begun)
  }

  async #result(
    fn: AnyFunction,
    args: readonly unknown[],
    options: CallOptions,
    begun?: Begun,
  ): Promise<Result> {
    return new Result(processFrame(await this.#limited(fn, args, options, { begun })))
  }

  #limited(
    fn: AnyFunction,
    args: readonly unknown[],
    { timeoutMs, signal }: CallOptions,
    how: {
      readonly begun?: Begun | undefined
      /** The error when it takes too long; that of a task by default. */
      readonly late?: (timeoutMs: number) => ZoneError
    },
  ): Promise<unknown> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const task = nodeTask()
    return new Promise((resolve, reject) => {
      let isGivenUp = false
      const giveUp = (why: unknown): void => {
        isGivenUp = true
        task.abandon(why)
        reject(why)
      }
      const aborted = (): void => giveUp(signal?.reason)
      const late = (): void => {
        task.abandon(new DOMException(`The task did not end within ${timeoutMs} ms`, 'TimeoutError'))
        const ms = timeoutMs ?? 0
        const error = how.late?.(ms)
        reject(error ?? new ZoneError('TASK_TIMEOUT', { zone: this.id, timeoutMs: ms, started: true }))
      }
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs)
      if (signal !== undefined) onAbort(signal, aborted)
      how.begun?.(giveUp)
      const release = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', aborted)
      }
      queueMicrotask(() => {
        if (isGivenUp) return release()
        void this.#call(fn, args, task).then(resolve, reject).finally(release)
      })
    })
  }
}

/** As each chunk of a `reduce` gets its first sum elsewhere, where it travels: one of its own. */
function copied(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  const frame = processFrame(value)
  return readFrame(frame, 0, frame.length)
}

async function exported(module: unknown, name: unknown, from: string): Promise<AnyFunction> {
  const [url, found] = exportOf(module, name)
  return (await functionByNumber(moduleFunctionNumber(url, found, from))) as AnyFunction
}

/** A task of this thread; in a worker what it calls is as deep as what the task that it is part of calls. */
function nodeTask(): Task {
  return new Task(NodeZone.id, 'node', currentTask()?.depth)
}
