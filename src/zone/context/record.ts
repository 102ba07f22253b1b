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

/** The record of a call. */
export interface CallRecord {
  /** When the call must have ended, by {@link nowMs}; `Infinity` if it has no deadline. */
  readonly deadlineMs: number
  readonly trace: TraceContext | undefined
  /** Each carried name, and its value behind it. */
  readonly values: readonly unknown[] | undefined
  /** Whose CPU time is measured: the caller's; in the record of a task, the task's own. */
  readonly cpu: CpuAccount | undefined
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
  /** Runs `body`, the function of a task, with the values of its record, and with none of another task. */
  enter<R>(record: CallRecord | undefined, body: () => R): R
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
