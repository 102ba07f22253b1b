/**
 * Errors in workers that no caller of a task receives: a rejection that nobody handled, a throwing timer.
 *
 * In the worker: one that belongs to a task in flight fails that task, and the others go on; one that belongs
 * to none is reported, and ends the worker if nothing is in flight there. In the thread that starts the
 * workers: listeners of the zone get it, or it is an `uncaughtException`, as that of a plain `Worker` is.
 * What user code listens for in a worker itself comes first.
 */
import { ZoneError } from '../errors.ts'

/** Gets an error, the name of the worker that it happened in, and whether that worker has ended by it. */
export type ErrorListener = (error: unknown, worker: string, ended: boolean) => void

const listeners = new Map<string, Set<ErrorListener>>()

/** Have `listener` get the errors of that zone's workers; returns what ends that. */
export function listenTo(zone: string, listener: ErrorListener): () => void {
  const all = listeners.get(zone) ?? new Set()
  listeners.set(zone, all)
  const own: ErrorListener = (error, worker, ended) => listener(error, worker, ended)
  all.add(own)
  return () => {
    all.delete(own)
    if (all.size === 0 && listeners.get(zone) === all) listeners.delete(zone)
  }
}

/** Nobody hears of that zone any more. */
export function forgetListeners(zone: string): void {
  listeners.delete(zone)
}

/** Of an error in a worker: which, what it is in words, and whether the worker has ended by it. */
interface Where {
  readonly worker: string
  readonly reason: string
  readonly ended: boolean
}

/** Hand an error of a worker to the zone's listeners, or to nobody, which ends the process. */
export function report(zone: string, error: unknown, where: Where): void {
  const { worker, reason, ended } = where
  const all = [...(listeners.get(zone) ?? [])]
  for (const listener of all) queueMicrotask(() => listener(error, worker, ended))
  if (all.length > 0) return
  queueMicrotask(() => {
    throw new ZoneError('WORKER_ERROR', { zone, worker, reason }, { cause: error })
  })
}

/** What a worker tells its owner of an error that did not end it: a frame. */
export interface ErrorNote {
  readonly corespunError: Uint8Array
}

/** What of an error's note came here, if it is one. */
export function noteOf(message: unknown): Uint8Array | undefined {
  return (message as Partial<ErrorNote> | null)?.corespunError
}
