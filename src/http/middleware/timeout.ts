/**
 * A time limit for the handlers of some routes.
 *
 * It is part of Corespun because it aborts `request.signal`. It cannot stop running JavaScript: work that
 * must be stoppable belongs in a zone: calls to zones have the time that is left. No default: the caller
 * passes the limit in ms.
 */
import { TIMER_MS_MAX, integer, valueOfKind } from '../../base/index.ts'
import { ZoneError } from '../../zone/index.ts'
import { withTimeLimit } from '../../zone/internal.ts'
import { wrong } from '../message/limits.ts'
import type { Middleware } from '../app/middleware.ts'
import { StatusError } from '../app/status-error.ts'

/** How much earlier than others a timer of Node may end. */
const TIMER_MS = 2
const TIME = integer(1, TIMER_MS_MAX, 0)

/**
 * Middleware that responds with 503 (`HANDLER_TIMEOUT`) and aborts `request.signal` if the handler does not
 * return a response in time. Calls to zones that the handler makes have no more time than that either.
 * @param timeoutMs In ms, 1 to 2^31 - 1.
 * @throws {HttpError} `HTTP_ARGUMENT` for another value.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, timeout, use } from 'corespun/http'
 *
 * const app = createApp({ routes: use({ '/': () => new Promise<string>(() => {}) }, timeout(20)) })
 * assert.equal((await app.inject('/')).status, 503)
 * ```
 */
export function timeout(timeoutMs: number): Middleware {
  if (timeoutMs === undefined) throw wrong('timeout(): timeoutMs', TIME.expected, timeoutMs)
  const most = valueOfKind('timeout()', 'timeoutMs', timeoutMs, TIME, wrong)
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
        const reason = `no response within ${most} ms`
        const error = new StatusError(503, reason, { code: 'HANDLER_TIMEOUT' })
        // Reject first: a handler that fails with the signal's reason must not win the race.
        reject(error)
        controller.abort(error)
      }, most)
    })
    // Calls to zones inherit what is left.
    const begunMs = performance.now()
    const isOver = (error: unknown): boolean =>
      error instanceof ZoneError &&
      error.code === 'TASK_TIMEOUT' &&
      (error.facts as { inherited?: true }).inherited === true &&
      performance.now() - begunMs > most - TIMER_MS
    // A call that ends by this limit may do so a moment before the timer: the response is the same.
    const response = withTimeLimit(most, next).catch((error: unknown) => {
      if (isOver(error)) return late
      throw error
    })
    // The body of a late response, such as an open file, is released; a late error is ignored.
    response.then((late) => (isLate ? late.body?.cancel() : undefined)).catch(() => {})
    try {
      return await Promise.race([response, late])
    } finally {
      clearTimeout(timer)
    }
  }
}
