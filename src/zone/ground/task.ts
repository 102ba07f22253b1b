/**
 * What a running task can read about itself: its zone, its worker, and whether its caller still waits.
 *
 * A task function is called with its {@link Task} as `this`; `currentTask()` returns the same to code that
 * it calls. A task's signal is made when it is first asked for, so that tasks which never ask pay nothing.
 * Also the shapes of what is called: task functions, and the exports of a module.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { DEPTH_UNKNOWN } from '../../native/index.ts'
import { type CallRecord, remainingMsOf } from './record.ts'
import { type Tracker, here } from './current.ts'

/**
 * The task that is running: `this` of its function, and the value of `currentTask()`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Task, zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * function where(this: Task): string {
 *   return `${this.worker} ${this.signal.aborted}`
 * }
 * assert.equal(await cpu.run(where), 'cpu/0 false')
 * await cpu.close()
 * ```
 */
export class Task {
  /** The id of the zone that runs it. */
  readonly zone: string
  /** The name of the worker that runs it: the zone's id, a slash, its slot. */
  readonly worker: string
  #controller: AbortController | undefined
  #reason: { readonly why: unknown } | undefined
  /**
   * How many tasks wait for this one, each for the next, as far as is known, and whose broadcasts: the core's
   * word. @internal
   */
  depth: number | undefined
  /** What its call took with it. @internal */
  record: CallRecord | undefined
  /** How long it has waited for a worker, as the core notes it. @internal */
  readonly waited: number

  /** @internal */
  constructor(zone: string, worker: string, depth: number | undefined, waited = 0) {
    this.zone = zone
    this.worker = worker
    this.depth = depth
    this.record = undefined
    this.waited = waited
  }

  /**
   * What is left until the deadline of its caller, in whole ms, 0 once it has passed; `undefined` without
   * one. It is that of the outermost call: a call has the time of the task that makes it, or less by its own
   * `timeoutMs`.
   */
  get remainingMs(): number | undefined {
    const leftMs = this.record === undefined ? undefined : remainingMsOf(this.record.deadlineMs)
    return leftMs === undefined ? undefined : Math.floor(leftMs)
  }

  /**
   * The CPU time that the task has used so far, in ms: of its thread, and of the tasks that it has called,
   * once they have ended. `undefined` unless it is measured, by `measureCpu()` around its call.
   */
  get cpuMs(): number | undefined {
    return this.record?.cpu?.cpuMs
  }

  /** Aborted when the caller's deadline passes or its signal is aborted. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason.why)
    }
    return this.#controller.signal
  }

  /**
   * Throws the signal's reason if the call was cancelled, without creating the signal.
   * @internal
   * @throws that reason.
   */
  throwIfAbandoned(): void {
    if (this.#reason !== undefined) throw this.#reason.why
  }

  /** The call was cancelled. @internal */
  abandon(why: unknown): void {
    this.#reason = { why }
    this.#controller?.abort(why)
  }
}

/**
 * A task for a broadcast, which holds up the worker, so that nothing it waits for in its zone can happen
 * there: calls of `depth` that lead back to the zone are refused.
 */
export function broadcastTask(zone: string, worker: string, depth: number): Task {
  const task = new Task(zone, worker, depth)
  here.broadcasts.add(task)
  return task
}

/** Whether the calling code belongs to a broadcast. */
export function isInBroadcast(): boolean {
  const task = currentTask()
  return task !== undefined && here.broadcasts.has(task)
}

/** A function that can be a task: it may use its {@link Task} as `this` and may be asynchronous. */
export type TaskFunction<Args extends unknown[], Value> = (this: Task, ...args: Args) => Value

/**
 * What a caller may pass for parameters: for an async iterator a synchronous one as well, such as a
 * generator, since streams arrive as what is asynchronous.
 */
export type Passed<Args extends unknown[]> = {
  [Index in keyof Args]:
    | Args[Index]
    | (Args[Index] extends AsyncIterable<infer Item>
        ? AsyncIterableIterator<Item> extends Args[Index]
          ? IterableIterator<Item>
          : never
        : never)
}

/** The exported functions of a module as calls to a zone. */
export type ModuleCalls<Module> = {
  readonly [
    Name in keyof Module as Module[Name] extends (...args: never[]) => unknown ? Name : never
  ]: Module[Name] extends (...args: infer Args) => infer Value
    ? (...args: Passed<Args>) => Promise<Awaited<Value>>
    : never
}

/** Which task the running code belongs to; the worker's loop calls `ended`. */
export interface TaskTracker extends Tracker<Task> {
  ended(task: Task): void
}

/** One task at a time: a variable is enough. */
export function singleTracker(): { set(task: Task): void } & TaskTracker {
  let now: Task | undefined
  return {
    set: (task) => void (now = task),
    run: (task, body) => {
      now = task
      return body()
    },
    current: () => now,
    ended: () => void (now = undefined),
  }
}

/**
 * Overlapping tasks: Node's AsyncLocalStorage follows each through its promises. `alone` began when there was
 * no other and is not followed: what belongs to none of the others is taken to be its own until it ends.
 */
export function overlappingTracker(alone?: Task): TaskTracker {
  const storage = new AsyncLocalStorage<Task>()
  let first = alone
  return {
    run: (task, body) => storage.run(task, body),
    current: () => storage.getStore() ?? first,
    ended: (task) => {
      if (task === first) first = undefined
    },
  }
}

export function useTracker(next: TaskTracker): void {
  here.tracker = next
}

/**
 * Run `body` as part of `task`, in a thread that is no worker or in one: its own task comes back after.
 */
export function useTrackerOnce<R>(task: Task, body: () => R): R {
  return here.outside.run(task, body)
}

/**
 * The task that the calling code belongs to; `undefined` outside of tasks.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { currentTask, zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const name = await cpu.run(async () => {
 *   const { currentTask } = await import('corespun/zone')
 *   return currentTask()?.zone
 * })
 * assert.equal(name, 'cpu')
 * assert.equal(currentTask(), undefined)
 * await cpu.close()
 * ```
 */
export function currentTask(): Task | undefined {
  return (here.outside.getStore() ?? here.tracker?.current()) as Task | undefined
}

/** The depth of a call that the calling code makes, in a worker or a main thread that runs tasks. */
export function callDepth(): number {
  const depth = currentTask()?.depth
  if (depth !== undefined) return depth + 1
  // What belongs to no task in the main thread is its program, which no task waits for.
  return here.zone === undefined ? 0 : DEPTH_UNKNOWN
}
