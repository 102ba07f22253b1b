/**
 * Errors of this thread's fibers that no caller receives.
 *
 * Each listener receives each once. Without a listener, the error of a fiber that nobody joined is an
 * `uncaughtException`, since its outcome is lost. The error of a loser is a warning of the process: the
 * result of its race is known, so the program has what it asked for.
 */
import { stackOf } from '../../base/index.ts'
import { type FiberError, wrong } from '../errors.ts'

/** What a listener of `onError` receives. */
export type LostFiberError = FiberError<'FIBER_UNHANDLED' | 'FIBER_LOSER_FAILED'>

const listeners = new Set<(error: LostFiberError) => void>()

/**
 * Calls `listener` with the errors of this thread's fibers that no caller receives: `FIBER_UNHANDLED` for a
 * fiber that fails and that nobody joins, `FIBER_LOSER_FAILED` for a loser of `race` or `any`. `cause` is
 * what was thrown. Without a listener the first is an `uncaughtException` of the process, the second a
 * warning.
 * @returns A function that removes the listener.
 * @throws {FiberError} `FIBER_ARGUMENT` for a listener that is not a function.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { fork, never, onError, race } from 'corespun/fiber'
 *
 * const errors: unknown[] = []
 * const remove = onError((error) => errors.push(error.cause))
 * const failed = new Error('close failed')
 * function* loser() {
 *   try {
 *     yield* never()
 *   } finally {
 *     throw failed
 *   }
 * }
 * assert.equal(await fork(race([loser, async () => 'first'])).join(), 'first')
 * assert.deepEqual(errors, [failed])
 * remove()
 * ```
 */
export function onError(listener: (error: LostFiberError) => void): () => void {
  if (typeof listener !== 'function') throw wrong('onError(): the listener', 'a function', listener)
  const own = (error: LostFiberError): void => listener(error)
  listeners.add(own)
  return () => void listeners.delete(own)
}

/**
 * Passes `error` on; what a listener throws is an `uncaughtException`.
 * @param unheard For a failure that no listener receives; default: it is an `uncaughtException`.
 */
export function deliver(error: LostFiberError, unheard = thrown): void {
  for (const listener of listeners) queueMicrotask(() => listener(error))
  if (listeners.size > 0) return
  if (error.code === 'FIBER_LOSER_FAILED') warn(error)
  else unheard(error)
}

function thrown(error: LostFiberError): void {
  queueMicrotask(() => {
    throw error
  })
}

/** Node prints `detail` below the message: where the error was thrown. */
function warn(error: LostFiberError): void {
  const detail = stackOf(error.cause)
  process.emitWarning(Object.defineProperty(error, 'detail', { value: detail, configurable: true }))
}
