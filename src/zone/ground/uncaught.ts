/**
 * Errors in workers that no caller of a task receives: an unhandled rejection, a throwing timer.
 *
 * In the worker, an error that belongs to a task in flight fails that task, and the others go on; an error
 * that belongs to no task is reported, and ends the worker if nothing is in flight there. In the thread that
 * starts the workers, the zone's listeners receive it; without one it is an `uncaughtException`, as that of a
 * plain `Worker` is. Listeners that user code adds in a worker itself come first.
 *
 * A worker that serves requests does not end by it: it leaves its zone, another takes its slot, and its
 * thread finishes what it has accepted.
 */
import { ZoneError } from '../errors.ts'
import type { Mark } from './current.ts'

/** Receives an error, the name of the worker in which it happened, and whether it ended that worker. */
export type ErrorListener = (error: unknown, worker: string, ended: boolean) => void

const listeners = new Map<string, Set<ErrorListener>>()

/** Returns a function that removes the listener. */
export function addListener(zone: string, listener: ErrorListener): () => void {
  const all = listeners.get(zone) ?? new Set()
  listeners.set(zone, all)
  const own: ErrorListener = (error, worker, ended) => listener(error, worker, ended)
  all.add(own)
  return () => {
    all.delete(own)
    if (all.size === 0 && listeners.get(zone) === all) listeners.delete(zone)
  }
}

export function dropListeners(zone: string): void {
  listeners.delete(zone)
}

interface ErrorReport {
  readonly worker: string
  readonly reason: string
  readonly ended: boolean
}

/** Call the zone's listeners with a worker's error; without one it ends the process. */
export function report(zone: string, error: unknown, { worker, reason, ended }: ErrorReport): void {
  const all = [...(listeners.get(zone) ?? [])]
  for (const listener of all) queueMicrotask(() => listener(error, worker, ended))
  if (all.length > 0) return
  queueMicrotask(() => {
    throw new ZoneError('WORKER_ERROR', { zone, worker, reason }, { cause: error })
  })
}

/** A worker's message to its owner about an error that did not end it: a frame. */
export interface ErrorNote {
  readonly corespunError: Uint8Array
}

/** A worker's message to its owner: an error, a frame, after which it leaves. */
export interface LeavingNote {
  readonly corespunLeaving: Uint8Array
  readonly marks: readonly Mark[]
}

/** A worker's message to its owner: it has left its slot, and its thread ends within this time. */
export interface LeftNote {
  readonly corespunLeftMs: number
  readonly marks: readonly Mark[]
}

/** A worker's message to its owner: its zone has released it. */
export interface ReleasedNote {
  readonly corespunReleased: true
}

/** A thread has ended: what it had marked is free, unless it has freed that itself. */
export function resetMarks(marks: readonly Mark[]): void {
  for (const { word, value } of marks) Atomics.compareExchange(word, 0, value, 0)
}

export function noteOf(message: unknown): Uint8Array | undefined {
  return (message as Partial<ErrorNote> | null)?.corespunError
}
