/**
 * What a call takes with it besides its arguments: one plain record, absent where there is nothing to take.
 *
 * It travels in the frame of the arguments, behind them (frame.ts). So the core contains nothing of it, and
 * who forwards a frame forwards it too. Times are those of the machine's monotonic clock, which all threads
 * and processes share.
 */

import type { CpuAccount, CpuMeter } from './cpu.ts'

/** The position in a trace: the headers of W3C Trace Context and of W3C Baggage, by their names. */
export interface TraceContext {
  /** Version, trace id, parent id and flags: `00-<32 digits>-<16 digits>-01`. */
  readonly traceparent?: string
  /** What tracing systems add to it. */
  readonly tracestate?: string
  /** Pairs of the program: `tenant=42,region=eu`. */
  readonly baggage?: string
}

export interface CallRecord {
  /** When the call must have ended, by {@link nowMs}; `Infinity` if it has no deadline. */
  readonly deadlineMs: number
  readonly carried: Carried | undefined
  /** Whose CPU time is measured: the caller's; in the record of a task, the task's own. */
  readonly cpu: CpuAccount | undefined
}

/** Most characters of a context that is kept as bytes. */
const KEPT_CHARS_MAX = 1024

/** The trace and the values of calls: one object for calls of one context that follow each other. */
export class Carried {
  readonly trace: TraceContext | undefined
  /** Each carried name, and its value behind it. */
  readonly values: readonly unknown[] | undefined
  /** Whether it stays what it is, however often it is read: primitive values, not many. */
  readonly isFixed: boolean
  /** The record of a call that takes nothing else. */
  readonly alone: CallRecord = { deadlineMs: Infinity, carried: this, cpu: undefined }
  readonly taken: Taken = { record: this.alone, timeoutMs: undefined, isInherited: true }
  /** Its bytes in frames, if it is fixed and was sent or received. */
  bytes: Uint8Array | undefined = undefined
  /** What of it belongs where in this thread. */
  slots: Slots | undefined = undefined

  constructor(trace: TraceContext | undefined, values: readonly unknown[] | undefined) {
    this.trace = trace
    this.values = values
    this.isFixed = isFixed(trace, values)
  }
}

/** Which values of a context belong into which storages of a thread that has registered `storagesCount`. */
export interface Slots {
  readonly storagesCount: number
  /** The values of the storages, in their order. */
  readonly values: readonly unknown[]
  /** Names of no storage, and their values. */
  readonly others: readonly unknown[]
}

function isFixed(
  { traceparent = '', tracestate = '', baggage = '' }: TraceContext = {},
  values: readonly unknown[] = [],
): boolean {
  let charsLeft = KEPT_CHARS_MAX - traceparent.length - tracestate.length - baggage.length
  for (let at = 0; at < values.length; at++) {
    const value = values[at]
    if (typeof value === 'string') charsLeft -= value.length
    else if (value !== null && typeof value !== 'number' && typeof value !== 'boolean') return false
  }
  return charsLeft >= 0
}

/** What a call takes with it, and its limit. */
export interface Taken {
  readonly record: CallRecord | undefined
  readonly timeoutMs: number | undefined
  /** Whether `timeoutMs` is what the caller has left. */
  readonly isInherited: boolean
}

/** The part of a task that its span shows. */
export interface TracedTask {
  readonly zone: string
  readonly worker: string
}

/** Makes spans of tasks; calls take with them the trace that it finds active. */
export interface TaskTracing {
  /** The trace that a call takes with it; `undefined` outside of all. */
  current(): TraceContext | undefined
  /** Runs the function of a task, whose caller was in that trace. */
  run<R>(task: TracedTask, name: string, trace: TraceContext | undefined, body: () => R): R
  /** The running task calls that function, because of a call in that trace whose part it is not. */
  about(name: string, cause: TraceContext | undefined): void
  /** That function has failed, and the task returns its error. */
  failed(error: unknown): void
  /** Runs what belongs to a task whose function has returned. */
  within<R>(task: TracedTask, body: () => R): R
}

/** How this thread carries contexts, as far as calls and tasks need it. */
export interface Carrying {
  /** Makes spans of the tasks of this thread. */
  readonly tracing: TaskTracing | undefined
  /** Measures the CPU time of this thread's tasks. */
  readonly meter: CpuMeter | undefined
  /** What a call of the calling code takes with it; `undefined` for nothing. */
  record(): CallRecord | undefined
  /** When the calling code must have ended, by {@link nowMs}; `Infinity` if it has no deadline. */
  deadlineMs(): number
  /** Whether a task with that record is run by `enter`. */
  isToEnter(record: CallRecord | undefined): boolean
  /**
   * Runs `body`, the function of a task, with the values of its record, and with none of another task.
   * @param isInTurn What is set may stay, for the next task or the end of its turn.
   */
  enter<R>(record: CallRecord | undefined, isInTurn: boolean, body: () => R): R
  turn(body: () => void): void
  /** Binds what runs later to the calling code's context; `undefined` outside of all. */
  bound(): (<R>(body: () => R) => R) | undefined
}

/** The machine's monotonic clock, in ms; `performance.now()` counts from the start of the thread. */
export function nowMs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e3 + ns / 1e6
}

/** What is left until a deadline, in ms, 0 once it has passed; `undefined` without one. */
export function remainingMsOf(deadlineMs: number): number | undefined {
  return deadlineMs === Infinity ? undefined : Math.max(0, deadlineMs - nowMs())
}
