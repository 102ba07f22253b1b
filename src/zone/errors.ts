/**
 * What zones refuse and what can become of a task, as errors.
 *
 * A function's own error is not here: it arrives as what it was. These are Corespun's words about the call
 * itself.
 */
import { type ArgumentFacts, CorespunError, type Sentences, argumentSentence } from '../base/index.ts'

/** The codes of {@link ZoneError} and what each is about. */
export interface ZoneCodes {
  /** A setting or an argument of the API has a value that it cannot have. */
  ZONE_ARGUMENT: ArgumentFacts
  /** A zone with that name exists. */
  ZONE_EXISTS: { readonly zone: string }
  /** No zone with that name exists. */
  ZONE_UNKNOWN: { readonly zone: string; readonly known: readonly string[] }
  /** `tasksMax` tasks wait; nothing was queued. */
  ZONE_FULL: { readonly zone: string; readonly tasksMax: number }
  /**
   * The waiting tasks' arguments, or the kept broadcasts', would exceed `queueBytesMax`; nothing was queued.
   */
  ZONE_BYTES_FULL: { readonly zone: string; readonly queueBytesMax: number; readonly taskBytes: number }
  /** `broadcastsMax` broadcasts are kept for replay; nothing was sent. */
  ZONE_BROADCASTS_FULL: { readonly zone: string; readonly broadcastsMax: number }
  /** One task's arguments are larger than `taskBytesMax`; nothing was queued. */
  TASK_TOO_LARGE: { readonly zone: string; readonly taskBytesMax: number; readonly taskBytes: number }
  /** The zone is closed or closing; the task did not run. */
  ZONE_CLOSED: { readonly zone: string }
  /** The thread that kept the zone's workers has ended, and they with it. */
  ZONE_OWNER_DIED: { readonly zone: string }
  /** The zone's workers cannot be started. */
  ZONE_BROKEN: { readonly zone: string; readonly reason: string }
  /** A call that blocks, or one of a broadcast into its own zone, would wait for the thread that makes it. */
  ZONE_WAITS_FOR_ITSELF: { readonly zone: string; readonly call: string }
  /** The call is nested deeper than the called zone's `callDepthMax`; nothing was queued. */
  ZONE_WAITS_TOO_DEEP: { readonly zone: string; readonly callDepthMax: number }
  /** A function given to `join` is asynchronous. */
  JOIN_ASYNC: { readonly zone: string; readonly name: string }
  /** Not every worker has answered in time. */
  BROADCAST_TIMEOUT: { readonly zone: string; readonly timeoutMs: number }
  /** The task did not end within its `timeoutMs`. */
  TASK_TIMEOUT: { readonly zone: string; readonly timeoutMs: number; readonly started: boolean }
  /** An error in a worker that belongs to none of its tasks, and nobody handled; see `cause`. */
  WORKER_ERROR: { readonly zone: string; readonly worker: string; readonly reason: string }
  /** The worker died while it ran the task; see `cause` where the reason is an error. */
  WORKER_DIED: { readonly zone: string; readonly worker: string; readonly reason: string }
}

const SENTENCES: Sentences<ZoneCodes> = {
  ZONE_ARGUMENT: argumentSentence,
  ZONE_EXISTS: ({ zone }) =>
    `a zone named ${JSON.stringify(zone)} exists already; zone.getOrCreate takes it, zone.get finds it`,
  ZONE_UNKNOWN: ({ zone, known }) =>
    `no zone is named ${JSON.stringify(zone)}` +
    (known.length === 0
      ? '; none has been created'
      : `; there are ${known.map((id) => JSON.stringify(id)).join(', ')}`),
  ZONE_FULL: ({ zone, tasksMax }) => `zone ${zone} is full: ${tasksMax} tasks wait (tasksMax)`,
  ZONE_BYTES_FULL: ({ zone, queueBytesMax, taskBytes }) =>
    `zone ${zone} is full: ${taskBytes} bytes more would exceed queueBytesMax of ${queueBytesMax}`,
  ZONE_BROADCASTS_FULL: ({ zone, broadcastsMax }) =>
    `zone ${zone} keeps ${broadcastsMax} broadcasts for replay already (broadcastsMax)`,
  TASK_TOO_LARGE: ({ zone, taskBytesMax, taskBytes }) =>
    `a task of ${taskBytes} bytes is larger than zone ${zone} allows: ${taskBytesMax} (taskBytesMax)`,
  ZONE_CLOSED: ({ zone }) => `zone ${zone} is closed`,
  ZONE_OWNER_DIED: ({ zone }) => `the thread that kept the workers of zone ${zone} has ended`,
  ZONE_BROKEN: ({ zone, reason }) => `the workers of zone ${zone} cannot be started: ${reason}`,
  ZONE_WAITS_FOR_ITSELF: ({ zone, call }) =>
    `${call} in a worker of zone ${zone} would wait for that worker itself`,
  ZONE_WAITS_TOO_DEEP: ({ zone, callDepthMax }) =>
    `a call to zone ${zone} is nested deeper than ${callDepthMax} tasks (callDepthMax), each of which ` +
    'waits for the next: end the recursion, or raise callDepthMax of that zone',
  JOIN_ASYNC: ({ zone, name }) =>
    `join in zone ${zone} calls synchronous functions; ${name || 'an anonymous one'} returned a promise`,
  BROADCAST_TIMEOUT: ({ zone, timeoutMs }) =>
    `not every worker of zone ${zone} has answered in ${timeoutMs} ms`,
  TASK_TIMEOUT: ({ zone, timeoutMs, started }) =>
    `the task in zone ${zone} did not ${started ? 'end' : 'start'} within ${timeoutMs} ms`,
  WORKER_ERROR: ({ worker, reason }) => `worker ${worker}, in none of its tasks: ${reason}`,
  WORKER_DIED: ({ worker, reason }) => `worker ${worker} died while it ran the task: ${reason}`,
}

/** What a zone refused or what became of a task; `code` says which. */
export class ZoneError<Code extends keyof ZoneCodes = keyof ZoneCodes> extends CorespunError<
  ZoneCodes,
  Code
> {
  /**
   * @param code Which.
   * @param facts What it is about.
   * @param options `cause`: the error that led to it.
   */
  constructor(code: Code, facts: ZoneCodes[Code], options?: ErrorOptions) {
    super(SENTENCES, code, facts, options)
  }

  override get name(): string {
    return 'ZoneError'
  }
}

const refusals = new WeakSet<object>()

/** An error of this thread's own call that the zone has not taken; returns it. */
export function refusal(error: ZoneError): ZoneError {
  refusals.add(error)
  return error
}

/** Whether a call failed because it was not taken: nothing of it has run. */
export function isRefusal(error: unknown): error is ZoneError {
  return typeof error === 'object' && error !== null && refusals.has(error)
}
