/**
 * `readiness`: what a load balancer asks before it sends requests to a server, and what it learns when the
 * server is about to close.
 */
import { callback, valueOfKind } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { exchangeOf } from '../fetch/request.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { Handler, HttpRequest } from './routes.ts'

/** Whether what the app depends on is there: a database, a cache that has been filled. */
export type ReadinessCheck = (request: HttpRequest) => boolean | Promise<boolean>

const CHECK = { ...callback, expected: 'a function (request) that returns a boolean' }
const HEADERS = { 'cache-control': 'no-store' }

/**
 * A handler for readiness probes: 200 with `ready`; 503 with `closing` once `close` has been called, and 503
 * with `not ready` while `check` returns false. A check that throws is an error of the handler, 500.
 * `delayMs` of `close` is the time for which probes can see that the server closes.
 * @param check Default: a server that runs is ready.
 * @throws {HttpError} `HTTP_ARGUMENT` if `check` is not a function.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { readiness, serve } from 'corespun/http'
 *
 * const routes = { '/': 'Hello', '/ready': readiness() }
 * await using server = await serve({ port: 0, routes })
 * assert.equal((await fetch(`${server.url}/ready`)).status, 200)
 * const closed = server.close({ delayMs: 3000 })
 * assert.equal((await fetch(`${server.url}/ready`)).status, 503)
 * await closed
 * ```
 */
export function readiness(check?: ReadinessCheck): Handler {
  valueOfKind('readiness()', 'check', check, CHECK, wrong)
  return (request) => {
    if (exchangeOf(request)?.isServerClosing === true) return stateOf(503, 'closing')
    const isReady = check === undefined || check(request)
    return typeof isReady === 'boolean' ? checked(isReady) : isReady.then(checked)
  }
}

function checked(isReady: boolean): Response {
  return isReady ? stateOf(200, 'ready') : stateOf(503, 'not ready')
}

function stateOf(status: number, text: string): Response {
  return new CorespunResponse(text, { status, headers: HEADERS })
}
