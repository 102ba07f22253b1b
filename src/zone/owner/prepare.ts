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
  /** Let it attach when its setup has returned, and return it; `undefined` when it has ended. */
  take(start: WorkerStart): WorkerThread | undefined
  /** Let it end by itself, torn down. */
  retire(): void
}

/** A worker's message to the thread that prepares it: its setup has returned. */
export interface PreparedNote {
  readonly corespunPrepared: true
}

/**
 * Start a thread that runs the zone's setup. The promise resolves when that has returned, and rejects with a
 * ZoneError: `SETUP_FAILED`, `SETUP_TIMEOUT`; `ZONE_START_FAILED` when the thread ends before.
 * @param report Receives the error of its teardown, where it is not needed after all.
 */
export function prepareWorker(
  start: WorkerStart,
  name: string,
  report: (error: unknown) => void,
): readonly [worker: PreparedWorker | undefined, done: Promise<void>] {
  const { zoneId: zone, settings } = start
  let [resolve, reject] = [(): void => {}, (_: unknown): void => {}]
  const done = new Promise<void>((...both) => ([resolve, reject] = both))
  const failed = (reason: string, cause?: unknown): void =>
    reject(stackless(() => new ZoneError('ZONE_START_FAILED', { zone, reason }, { cause })))
  let spare: SpareWorker
  try {
    spare = new SpareWorker((slots) => startWorker({ slots, prepares: start }, name, settings))
  } catch (error) {
    failed(`it could not be started: ${stringOf((error as Error).message)}`, error)
    return [undefined, done]
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
  thread.on('message', received)
  thread.on('error', (error) => failed(deathReason(error), revivedError(error)))
  thread.once('exit', (code, signal) => failed(exitReason(code, signal)))
  const prepared: PreparedWorker = {
    take(given) {
      isTaken = true
      if (isPrepared) thread.off('message', received)
      return spare.take(given)
    },
    retire: () => spare.retire(),
  }
  return [prepared, done]
}
