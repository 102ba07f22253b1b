/**
 * A limit on the time that handlers of some routes take to decide their answer.
 *
 * JavaScript that runs cannot be stopped from outside: what ends at the limit is the waiting, and whoever
 * listens to `request.signal`. Work that may have to be stopped belongs into a zone, with that signal.
 */
import { TIMER_MS_MAX, integer, valueOfKind } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import type { Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

const TIME = integer(1, TIMER_MS_MAX, 0)

/**
 * Answers 503 (`HANDLER_TIMEOUT`) when what lies inside has no answer in time, and aborts `request.signal`.
 * @param timeoutMs 1 or more.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function timeout(timeoutMs: number): Middleware {
  const most = valueOfKind('timeout()', 'timeoutMs', timeoutMs ?? null, TIME, wrong)
  return async (request, next) => {
    const controller = new AbortController()
    const signal = AbortSignal.any([request.signal, controller.signal])
    Object.defineProperty(request, 'signal', {
      value: signal,
      configurable: true,
    })
    let timer: NodeJS.Timeout | undefined
    let isLate = false
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true
        const reason = `there was no answer within ${most} ms`
        const error = new StatusError(503, reason, { code: 'HANDLER_TIMEOUT' })
        // First the answer: a handler that fails with the signal's reason must not be quicker.
        reject(error)
        controller.abort(error)
      }, most)
    })
    const response = next()
    // Late, its caller has its answer: an error is nobody's, and a body (an open file, say) is let go.
    response.then((late) => (isLate ? late.body?.cancel() : undefined)).catch(() => {})
    try {
      return await Promise.race([response, late])
    } finally {
      clearTimeout(timer)
    }
  }
}
