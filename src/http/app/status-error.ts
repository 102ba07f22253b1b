/**
 * Errors with a status: `throw new StatusError(404, 'no such user')`.
 *
 * {@link jsonErrors} turns every error into a response: 4xx for errors of clients, 503 and 504 for refusals
 * and timeouts of zones, stores, locks and fibers, 502 for a worker that died, 500 with an id for the rest.
 * The message of an unexpected error, or the reason of a worker's death, never reaches a client.
 */
import { type Kind, CorespunError, type Sentences, callback, optionsOf, randomId } from '../../base/index.ts'
import type { ErrorHandler } from './routes.ts'
import { statusOf } from '../errors.ts'
import { wrong } from '../message/limits.ts'
import { CorespunResponse } from '../fetch/response.ts'
import { carriedHeaders, getRequestId, withCarried } from './carried.ts'
import { logged } from './logged.ts'

/** The facts of a {@link StatusError}. */
export interface StatusCodes {
  /** A handler threw this status. */
  HTTP_STATUS: {
    /** 400 to 599. */
    readonly status: number
    /** `error.code` in the response, for programs. */
    readonly error: string
    /** `error.message` in the response, for people. */
    readonly reason: string
  }
}

const SENTENCES: Sentences<StatusCodes> = {
  HTTP_STATUS: ({ status, reason }) => `${status} ${reason}`,
}

/** Options of {@link StatusError}. */
export interface StatusErrorOptions extends ErrorOptions {
  /** `error.code` in the response. Default: the status in words, such as `NOT_FOUND`. */
  readonly code?: string
  /** Headers of the response, such as `retry-after`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * An error with a response status. Its message is sent to the client.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, StatusError } from 'corespun/http'
 *
 * const app = createApp({
 *   routes: {
 *     '/user/:id': () => {
 *       throw new StatusError(404, 'no such user')
 *     },
 *   },
 * })
 * const response = await app.inject('/user/7')
 * assert.deepEqual(await response.json(), { error: { code: 'NOT_FOUND', message: 'no such user' } })
 * ```
 */
export class StatusError extends CorespunError<StatusCodes> {
  /** @internal */
  static readonly sentences = SENTENCES
  /** Headers of the response. */
  readonly headers: Readonly<Record<string, string>>

  /**
   * @param status 400 to 599.
   * @param reason The message for the client. Default: the status in words.
   * @throws {HttpError} `HTTP_ARGUMENT` for a status outside of this range.
   */
  constructor(status: number, reason?: string, options: StatusErrorOptions = {}) {
    if (!Number.isInteger(status) || status < 400 || status > 599)
      throw wrong('new StatusError(): status', 'an integer from 400 to 599', status)
    const error = options.code ?? nameOf(status)
    super('HTTP_STATUS', { status, error, reason: reason ?? wordsOf(status) }, options)
    this.headers = options.headers ?? {}
  }

  /** The status of the response. */
  get status(): number {
    return this.facts.status
  }
}

/** Options of {@link jsonErrors}. */
export interface JsonErrorsOptions {
  /**
   * Called for responses with status 500 and 502, with the id that the client receives. If it throws or
   * rejects, its error is printed. Default: prints to standard error.
   */
  readonly log?: (cause: unknown, about: { readonly id: string; readonly request: string }) => void
}

const OPTIONS = { log: callback as Kind<JsonErrorsOptions['log']> }

/** Marks an `error` function that also makes the 404 and 405 responses of the router. */
export const HANDLES_REFUSALS = Symbol('corespun.handlesRefusals')

/** `retry-after` of 503 responses, in seconds. */
const RETRY_AFTER_S = '1'

/**
 * Returns an `error` function for `serve` that makes JSON responses: `{"error": {"code", "message",
 * "requestId"}}` with the status of the error. It also makes the router's 404 and 405 responses. `requestId`
 * is the id of `requestId()`; without that middleware only 500 and 502 have one, with which they are logged.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, jsonErrors } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/': 'Hello' }, error: jsonErrors() })
 * const response = await app.inject('/missing')
 * const { error } = (await response.json()) as { error: { code: string } }
 * assert.equal(error.code, 'NOT_FOUND')
 * ```
 */
export function jsonErrors(options?: JsonErrorsOptions): ErrorHandler {
  const { log = printed } = optionsOf(options, OPTIONS, wrong, 'jsonErrors()')
  const handler: ErrorHandler = (cause, request) => {
    let requestId = getRequestId(request)
    const { status, code, message, headers } = partsOf(cause)
    if (status === 500 || status === 502) {
      const about = { id: (requestId ??= randomId()), request: `${request.method} ${pathOf(request)}` }
      logged('the log of jsonErrors()', () => log(cause, about))
    }
    const body = { error: { code, message, requestId } }
    const response = CorespunResponse.json(body, {
      status,
      headers: { ...headers, 'cache-control': 'no-store' },
    })
    return withCarried(response, carriedHeaders(request))
  }
  return Object.assign(handler, { [HANDLES_REFUSALS]: true })
}

/** The response for a StatusError; `undefined` for other errors. */
export function statusResponse(cause: unknown, request: object): Response | undefined {
  if (!(cause instanceof StatusError)) return undefined
  const { status, error: code, reason: message } = cause.facts
  const id = getRequestId(request)
  const body = {
    error: { code, message, ...(id === undefined ? {} : { requestId: id }) },
  }
  return CorespunResponse.json(body, {
    status,
    headers: { ...cause.headers, 'cache-control': 'no-store' },
  })
}

interface ErrorParts {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

function partsOf(cause: unknown): ErrorParts {
  if (cause instanceof StatusError) {
    const { status, error, reason } = cause.facts
    return { status, code: error, message: reason, headers: cause.headers }
  }
  const status = statusOf(cause)
  if (status === 500) return plain(500, nameOf(500), wordsOf(500))
  const { code, message } = cause as Error & { code?: string }
  // The reason of a worker's death is the text of an uncaught error: not for clients.
  const shown = status === 502 ? wordsOf(status) : message
  return plain(status, cause instanceof CorespunError ? code! : nameOf(status), shown)
}

function plain(status: number, code: string, message: string): ErrorParts {
  return {
    status,
    code,
    message,
    headers: status === 503 ? { 'retry-after': RETRY_AFTER_S } : {},
  }
}

function printed(cause: unknown, { id, request }: { id: string; request: string }): void {
  console.error(`corespun/http: ${request} failed (request ${id}):`, cause)
}

/** The path of a request for logs; '?' if its URL was not read before the response was sent. */
export function pathOf(request: { readonly url: string }): string {
  try {
    return new URL(request.url).pathname
  } catch {
    return '?'
  }
}

function wordsOf(status: number): string {
  // An import of node:http reads all of its exports, and so loads Node's WebSocket and fetch.
  return process.getBuiltinModule('node:http').STATUS_CODES[status] ?? `Status ${status}`
}

function nameOf(status: number): string {
  return wordsOf(status)
    .replace(/[^A-Za-z]+/g, '_')
    .toUpperCase()
}
