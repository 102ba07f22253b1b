/**
 * What zones refuse and how calls fail, as errors.
 *
 * An error of the called function is not here: it arrives as it is.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  unknownSentence,
} from '../base/index.ts'

/** The codes of {@link ZoneError} with their facts. */
export interface ZoneCodes {
  /** An argument or an option has a wrong value. */
  ZONE_ARGUMENT: ArgumentFacts
  /** A zone with that name exists. */
  ZONE_EXISTS: { readonly zone: string; readonly workerOf?: string }
  /** No zone with that name exists; `known` are the names of those that do. */
  ZONE_UNKNOWN: { readonly zone: string; readonly known: readonly string[] }
  /** `tasksMax` tasks wait; nothing was queued. */
  ZONE_FULL: { readonly zone: string; readonly tasksMax: number }
  /** `tasksPerTenantMax` tasks of the call's tenant wait; nothing was queued. */
  ZONE_TENANT_FULL: {
    readonly zone: string
    readonly tenant: string | number
    readonly tasksPerTenantMax: number
  }
  /** The waiting arguments, or the kept broadcasts, would exceed `queueBytesMax`; nothing was queued. */
  ZONE_BYTES_FULL: { readonly zone: string; readonly queueBytesMax: number; readonly taskBytes: number }
  /** As many broadcasts are kept for replay as a zone keeps; nothing was sent. */
  ZONE_BROADCASTS_FULL: { readonly zone: string; readonly broadcastsMax: number }
  /** One task's arguments are larger than `queueBytesMax` allows; nothing was queued. */
  TASK_TOO_LARGE: { readonly zone: string; readonly taskBytesMax: number; readonly taskBytes: number }
  /** The zone is closed or closing; the task did not run. */
  ZONE_CLOSED: { readonly zone: string }
  /** The thread that started the zone's workers has ended, and they with it. */
  ZONE_OWNER_DIED: { readonly zone: string }
  /** The zone's workers cannot be started. */
  ZONE_START_FAILED: { readonly zone: string; readonly reason: string }
  /** The zone's `setup` threw in each of the workers that were started; `cause` is what it threw. */
  SETUP_FAILED: {
    readonly zone: string
    readonly worker: string
    readonly setup: string
    readonly reason: string
  }
  /** The zone's `setup` did not end within `hookMs`. */
  SETUP_TIMEOUT: {
    readonly zone: string
    readonly worker: string
    readonly setup: string
    readonly hookMs: number
  }
  /** `workerState` was called outside of the workers of a zone with a `setup`. */
  SETUP_MISSING: { readonly zone: string }
  /** The zone's `teardown` threw: `cause` is what it threw. */
  TEARDOWN_FAILED: {
    readonly zone: string
    readonly worker: string
    readonly teardown: string
    readonly reason: string
  }
  /** The zone's `teardown` did not end within `hookMs`; the worker was ended. */
  TEARDOWN_TIMEOUT: {
    readonly zone: string
    readonly worker: string
    readonly teardown: string
    readonly hookMs: number
  }
  /** The workers of a zone can be processes on Unix, in Node. */
  ISOLATION_UNSUPPORTED: { readonly platform: string; readonly runtime: string | undefined }
  /** A call that blocks, or one of a broadcast to its own zone, would wait for the thread that makes it. */
  ZONE_DEADLOCK: { readonly zone: string; readonly call: string }
  /** The call is nested deeper than a zone accepts, 4096 tasks; nothing was queued. */
  ZONE_CALL_TOO_DEEP: { readonly zone: string; readonly callDepthMax: number }
  /** Another storage is carried by that name in this thread. */
  CONTEXT_EXISTS: { readonly name: string }
  /** A function that `join` calls is asynchronous. */
  JOIN_ASYNC: { readonly zone: string; readonly name: string }
  /** Not all workers have run the broadcast within `timeoutMs`. */
  BROADCAST_TIMEOUT: { readonly zone: string; readonly timeoutMs: number }
  /**
   * The call did not end within its `timeoutMs`. With `inherited` that is what the call's caller had left of
   * its own time.
   */
  TASK_TIMEOUT: {
    readonly zone: string
    readonly timeoutMs: number
    readonly started: boolean
    readonly inherited?: true
  }
  /** An unhandled error in a worker that belongs to none of its tasks: see `cause`. */
  WORKER_ERROR: { readonly zone: string; readonly worker: string; readonly reason: string }
  /** The worker died while it ran the task; `cause` is the error that ended it, if one did. */
  WORKER_DIED: { readonly zone: string; readonly worker: string; readonly reason: string }
}

const SENTENCES: Sentences<ZoneCodes> = {
  ZONE_ARGUMENT: argumentSentence,
  ZONE_EXISTS: ({ zone, workerOf }) =>
    zone === 'node'
      ? 'the name "node" is that of the calling thread; choose another one'
      : zone === 'corespun.main'
        ? 'the name "corespun.main" is that of the main thread, which zone.main returns; choose another one'
        : `a zone named ${JSON.stringify(zone)} already exists; ` +
          (workerOf === undefined
            ? 'zone.getOrCreate() or zone.get() returns it'
            : `a worker of zone ${JSON.stringify(workerOf)} has loaded a module that creates it: ` +
              'use zone.getOrCreate() there, or move what tasks need into another module'),
  ZONE_UNKNOWN: ({ zone, known }) => unknownSentence('zone', zone, known),
  ZONE_FULL: ({ zone, tasksMax }) =>
    `zone ${zone} is full: ${tasksMax} tasks wait (tasksMax); await zone.ready() before the call`,
  ZONE_TENANT_FULL: ({ zone, tenant, tasksPerTenantMax }) =>
    `zone ${zone} has ${tasksPerTenantMax} waiting tasks of tenant ${JSON.stringify(tenant)} ` +
    '(tasksPerTenantMax); wait until some of its calls have ended, or refuse the work',
  ZONE_BYTES_FULL: ({ zone, queueBytesMax, taskBytes }) =>
    `zone ${zone} is full: ${taskBytes} more bytes would exceed queueBytesMax (${queueBytesMax}); ` +
    'await zone.ready() before the call',
  ZONE_BROADCASTS_FULL: ({ zone, broadcastsMax }) =>
    `zone ${zone} already keeps ${broadcastsMax} broadcasts for replay; ` +
    'keep what changes often in a store',
  TASK_TOO_LARGE: ({ zone, taskBytesMax, taskBytes }) =>
    `the arguments have ${taskBytes} bytes; zone ${zone} accepts ${taskBytesMax} per task; ` +
    'send less, pass large buffers through move(), or raise queueBytesMax',
  ZONE_CLOSED: ({ zone }) => `zone ${zone} is closed; close a zone after its last call has ended`,
  ZONE_OWNER_DIED: ({ zone }) =>
    `the thread that started the workers of zone ${zone} has ended, and they with it; ` +
    'create zones in a thread that outlives their callers',
  ZONE_START_FAILED: ({ zone, reason }) =>
    `the workers of zone ${zone} cannot be started: ${advised(reason)}`,
  SETUP_FAILED: ({ zone, worker, setup, reason }) =>
    `the setup of zone ${zone} (${setup}) failed in worker ${worker}: ${reason}; ` +
    'correct what the cause shows, and create the zone again',
  SETUP_TIMEOUT: ({ zone, worker, setup, hookMs }) =>
    `the setup of zone ${zone} (${setup}) did not end within ${hookMs} ms (hookMs) in worker ${worker}; ` +
    'raise hookMs, or wait for less in it',
  SETUP_MISSING: ({ zone }) =>
    `workerState() was called in ${zone === 'node' ? 'a thread that is not a worker' : `zone ${zone}`}, ` +
    'which has no setup; pass one to zone.create(), and call workerState() in its tasks',
  TEARDOWN_FAILED: ({ zone, worker, teardown, reason }) =>
    `the teardown of zone ${zone} (${teardown}) failed in worker ${worker}: ${reason}; ` +
    'catch the error in it (see the cause), or receive it with zone.onError()',
  TEARDOWN_TIMEOUT: ({ zone, worker, teardown, hookMs }) =>
    `the teardown of zone ${zone} (${teardown}) did not end within ${hookMs} ms (hookMs) ` +
    `in worker ${worker}; raise hookMs, or close less in it`,
  ISOLATION_UNSUPPORTED: ({ platform, runtime }) =>
    `isolation: 'process' needs Node on Linux or macOS; this is ${runtime ?? `Node on ${platform}`}; ` +
    'leave isolation out, or run the code in a process of your own',
  ZONE_DEADLOCK: ({ zone, call }) =>
    `zone ${zone}: ${call} would wait for a worker that itself waits for the call; ` +
    'call another zone, or make the call in another thread',
  ZONE_CALL_TOO_DEEP: ({ zone, callDepthMax }) =>
    `a call to zone ${zone} is nested deeper than ${callDepthMax} tasks, each of which waits for ` +
    'the next: end the recursion',
  CONTEXT_EXISTS: ({ name }) =>
    `carry(): this thread already carries another storage as ${JSON.stringify(name)}; ` +
    'choose another name, or call carry(name), which returns the one it has',
  JOIN_ASYNC: ({ zone, name }) =>
    `join() in zone ${zone} calls synchronous functions; ${name || 'an anonymous one'} returned a promise; ` +
    'for asynchronous ones, await zone.current.run()',
  BROADCAST_TIMEOUT: ({ zone, timeoutMs }) =>
    `not all workers of zone ${zone} have run the broadcast within ${timeoutMs} ms (timeoutMs); ` +
    'raise timeoutMs, or shorten the tasks that it waits for',
  TASK_TIMEOUT: ({ zone, timeoutMs, started, inherited }) =>
    inherited === true
      ? `the call to zone ${zone} did not ${started ? 'end' : 'start'} within the ${timeoutMs} ms ` +
        'that its caller had left; raise the limit of the outermost call, or send smaller tasks'
      : `the call to zone ${zone} did not ${started ? 'end' : 'start'} within ${timeoutMs} ms (timeoutMs); ` +
        `raise timeoutMs, or ${started ? 'send smaller tasks' : 'add workers to the zone'}`,
  WORKER_ERROR: ({ worker, reason }) =>
    `worker ${worker}, outside of its tasks: ${reason}; ` +
    'handle it where it is thrown (see the cause), or receive it with zone.onError()',
  WORKER_DIED: ({ worker, reason }) => `worker ${worker} died while it ran the task: ${advised(reason)}`,
}

/** The reason why a worker ended or did not start, with what to do if it is the program's or a flag's. */
function advised(reason: string): string {
  if (reason.endsWith('this API has been restricted')) return `${reason}; pass --allow-worker to node`
  const isExit = reason.startsWith('it exited with code ')
  return isExit ? `${reason} (process.exit() ends the worker; throw an error instead)` : reason
}

/**
 * What a zone refused, or how a call failed: see `code` and `facts`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { ZoneError, zone } from 'corespun/zone'
 *
 * try {
 *   zone.get('reports')
 * } catch (error) {
 *   assert.ok(error instanceof ZoneError)
 *   assert.equal(error.code, 'ZONE_UNKNOWN')
 *   assert.equal(error.facts.zone, 'reports')
 * }
 * ```
 */
export class ZoneError<Code extends keyof ZoneCodes = keyof ZoneCodes> extends CorespunError<
  ZoneCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

const refusals = new WeakSet<object>()

/** Marks and returns the error of a call that the zone has not accepted. */
export function refusal(error: ZoneError): ZoneError {
  refusals.add(error)
  return error
}

/** Whether the zone did not accept the call, so that nothing of it has run. */
export function isRefusal(error: unknown): error is ZoneError {
  return typeof error === 'object' && error !== null && refusals.has(error)
}
