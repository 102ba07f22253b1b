/**
 * A thread that runs the `setup` of its zone before the slot that it is for is free.
 *
 * It is watched from here until it has the slot: its errors are those of whoever waits for it.
 */
import { valueOf } from '../../bridge/index.ts'
import { stringOf } from '../call/portable.ts'
import { stackless } from '../call/stacks.ts'
import { ZoneError } from '../errors.ts'
import { noteOf } from '../ground/uncaught.ts'
import { watchHooks } from './hook-times.ts'
import { SpareWorker } from './spare.ts'
import { startWorker } from './start.ts'
import { type WorkerStart, type WorkerThread, deathReason, exitReason, revivedError } from './thread.ts'

/** A thread that runs the zone's setup, or has, and waits for its slot. */
export interface PreparedWorker {
  /**
   * Resolves when its setup has returned, and rejects with a ZoneError: `SETUP_FAILED`, `SETUP_TIMEOUT`;
   * `ZONE_START_FAILED` when the thread ends before.
   */
  readonly done: Promise<void>
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>
  /** Let it attach when its setup has returned, and return it; `undefined` when it has ended. */
  take(start: WorkerStart): WorkerThread | undefined
  /** Let it end by itself, torn down. */
  retire(): void
  terminate(): void
}

/** A worker's message to the thread that prepares it: its setup has returned. */
export interface PreparedNote {
  readonly corespunPrepared: true
}

/** Who waits for a prepared worker. */
export interface Preparer {
  /** Those of the zone that have no slot, until they have ended. */
  readonly unseated: Set<PreparedWorker>
  /** Receives the error of its teardown, where it is not needed after all. */
  report(error: unknown): void
}

/** Start a thread that runs the zone's setup. */
export function prepareWorker(
  start: WorkerStart,
  name: string,
  { unseated, report }: Preparer,
): PreparedWorker {
  const { zoneId: zone, settings } = start
  let [resolve, reject, end] = [(): void => {}, (_: unknown): void => {}, (): void => {}]
  const done = new Promise<void>((...both) => ([resolve, reject] = both))
  const ended = new Promise<void>((resolve) => (end = resolve))
  const failed = (reason: string, cause?: unknown): void =>
    reject(stackless(() => new ZoneError('ZONE_START_FAILED', { zone, reason }, { cause })))
  let spare: SpareWorker
  try {
    spare = new SpareWorker((slots) => startWorker({ slots, prepares: start }, name, settings))
  } catch (error) {
    failed(`it could not be started: ${stringOf((error as Error).message)}`, error)
    return { done, ended: Promise.resolve(), take: () => undefined, retire: () => {}, terminate: () => {} }
  }
  const { thread } = spare
  let isTaken = false
  let isPrepared = false
  const takesHook = watchHooks({
    zone,
    worker: name,
    settings,
    thread,
    setupFailed: reject,
    teardownFailed: report,
  })
  const received = (message: unknown): void => {
    if (takesHook(message)) return
    if ((message as Partial<PreparedNote> | null)?.corespunPrepared === true) {
      isPrepared = true
      if (isTaken) thread.off('message', received)
      return resolve()
    }
    const note = isTaken ? undefined : noteOf(message)
    if (note !== undefined) report(valueOf(note, 0, note.length))
  }
  const prepared: PreparedWorker = {
    done,
    ended,
    take(given) {
      isTaken = true
      unseated.delete(prepared)
      if (isPrepared) thread.off('message', received)
      return spare.take(given)
    },
    retire: () => spare.retire(),
    terminate: () => void thread.terminate(),
  }
  unseated.add(prepared)
  thread.on('message', received)
  thread.on('error', (error) => failed(deathReason(error), revivedError(error)))
  thread.once('exit', (code, signal) => {
    unseated.delete(prepared)
    failed(exitReason(code, signal))
    end()
  })
  return prepared
}
