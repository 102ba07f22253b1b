/**
 * An error that is an answer: `throw new StatusError(404, 'no such user')`.
 *
 * {@link jsonErrors} makes answers of errors, these and all others: 4xx for what the client did, 503 and
 * 504 for what zones, stores, locks and fibers refuse, 502 for a worker that died, 500 with an id for the
 * rest. What an unexpected error says, or what a worker died of, is never shown to a client.
 */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { type Kind, CorespunError, type Sentences, callback, optionsOf } from '../../base/index.ts'
import type { ErrorHandler } from './routes.ts'
import { statusOf } from '../errors.ts'
import { wrong } from '../limits.ts'
import { CorespunResponse } from '../fetch/response.ts'
import { carriedHeaders, getRequestId, withCarried } from './carried.ts'
import { logged } from './logged.ts'

/** The facts of a {@link StatusError}. */
export interface StatusCodes {
  /** A handler decided that this is the answer. */
  HTTP_STATUS: {
    /** 400 to 599. */
    readonly status: number
    /** What a program reads in the answer's `error.code`. */
    readonly error: string
    /** What a person reads in the answer's `error.message`. */
    readonly reason: string
  }
}

const SENTENCES: Sentences<StatusCodes> = {
  HTTP_STATUS: ({ status, reason }) => `${status} ${reason}`,
}

/** What a {@link StatusError} may be made with besides. */
export interface StatusErrorOptions extends ErrorOptions {
  /** The answer's `error.code`. Default: the status in words, `NOT_FOUND`. */
  readonly code?: string
  /** Headers of the answer, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A failure that a handler chose the answer of. What it says is shown to the client. */
export class StatusError extends CorespunError<StatusCodes> {
  /** Headers of its answer. */
  readonly headers: Readonly<Record<string, string>>

  /**
   * @param status 400 to 599.
   * @param reason For people. Default: the status in words.
   * @param options See {@link StatusErrorOptions}.
   * @throws {HttpError} `HTTP_ARGUMENT` for another status.
   */
  constructor(status: number, reason?: string, options: StatusErrorOptions = {}) {
    if (!Number.isInteger(status) || status < 400 || status > 599)
      throw wrong('new StatusError(): status', 'an integer from 400 to 599', status)
    const error = options.code ?? nameOf(status)
    super(SENTENCES, 'HTTP_STATUS', { status, error, reason: reason ?? wordsOf(status) }, options)
    this.headers = options.headers ?? {}
  }

  /** The status of its answer. */
  get status(): number {
    return this.facts.status
  }
}

/** What {@link jsonErrors} takes. */
export interface JsonErrorsOptions {
  /**
   * Told of answers of 500 and 502, which nobody expected, with the client's id. One that throws or rejects
   * is told on the console. Default: the console.
   */
  readonly log?: (cause: unknown, about: { readonly id: string; readonly request: string }) => void
}

const OPTIONS = { log: callback as Kind<JsonErrorsOptions['log']> }

/** Marks the `error` of an app that also answers in place of the router's own 404 and 405. */
export const HANDLES_REFUSALS = Symbol('corespun.handlesRefusals')

/** Seconds after which a client may try again what was refused because too much was going on. */
const RETRY_AFTER_S = '1'

/**
 * The `error` of `serve` for a JSON API: each error becomes `{"error": {"code", "message", "requestId"}}`
 * with the status that fits. So do 404 and 405 where no route is.
 */
export function jsonErrors(options?: JsonErrorsOptions): ErrorHandler {
  const { log = printed } = optionsOf(options, OPTIONS, wrong, 'jsonErrors()')
  const handler: ErrorHandler = (cause, request) => {
    const id = getRequestId(request) ?? randomUUID()
    const { status, code, message, headers } = partsOf(cause)
    if (status === 500 || status === 502) {
      const about = { id, request: `${request.method} ${pathOf(request)}` }
      logged('the log of jsonErrors()', () => log(cause, about))
    }
    const body = { error: { code, message, requestId: id } }
    const response = CorespunResponse.json(body, {
      status,
      headers: { ...headers, 'cache-control': 'no-store' },
    })
    return withCarried(response, carriedHeaders(request))
  }
  return Object.assign(handler, { [HANDLES_REFUSALS]: true })
}

/** The answer of a StatusError alone; undefined for other errors. */
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
  // Of a worker's death only that there was one: its reason is the text of an error that nobody caught.
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

/** The path of a request for logs; '?' when nobody looked at it before its response. */
export function pathOf(request: { readonly url: string }): string {
  try {
    return new URL(request.url).pathname
  } catch {
    return '?' // its answer has been given, and nobody had looked at the URL
  }
}

function wordsOf(status: number): string {
  return STATUS_CODES[status] ?? `Status ${status}`
}

function nameOf(status: number): string {
  return wordsOf(status)
    .replace(/[^A-Za-z]+/g, '_')
    .toUpperCase()
}
