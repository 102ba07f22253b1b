/**
 * Access log: one record for each request when its response is decided.
 *
 * It is part of Corespun because only the server sees which requests failed outside of handlers, matched no
 * route or lost their client. Defaults: lines of JSON to standard output, every request.
 */
import { HttpError, statusOf } from '../errors.ts'
import { type Kind, callback, isAbort, optionsOf } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { getRequestId } from '../app/carried.ts'
import { logged } from '../app/logged.ts'
import { EVERYWHERE, type Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

/** The status that server logs use for a client that disconnects before the response (nginx). */
const CLIENT_DISCONNECTED = 499

/** The record of one request. */
export interface AccessRecord {
  /** Arrival of the request, ISO 8601. */
  readonly time: string
  /** The id of the request; `undefined` if `requestId()` is not in use. */
  readonly requestId: string | undefined
  /** The request method. */
  readonly method: string
  /** The path, without the query. */
  readonly path: string
  /**
   * The response status. For an error, the status that `jsonErrors()` uses; 499 if the client disconnects
   * before the response. A stream that fails before its first byte is logged with its own status although
   * the client receives 500; `jsonErrors({ log })` reports it.
   */
  readonly status: number
  /** Time from the request to the head of its response, in ms. A streamed body takes longer. */
  readonly ms: number
  /** The address of the client without its port. */
  readonly remoteAddress: string
  /** The `user-agent` header. */
  readonly userAgent: string | undefined
}

/** Fields that an app adds to a record. */
export type AccessFields = Readonly<Record<string, unknown>>

/** A logger such as pino's. */
export interface AccessLogger {
  /** Called with each record. @param message Such as `GET /user/7 200`. */
  info(record: Omit<AccessRecord, 'time'>, message: string): void
}

/** Options of {@link accessLog}. */
export interface AccessLogOptions {
  /**
   * A logger such as pino's, which receives records without `time` because it adds its own, or a function.
   * If it throws or rejects, its error is printed. Default: writes a line of JSON to standard output.
   */
  readonly log?: AccessLogger | ((record: AccessRecord & AccessFields) => void)
  /**
   * Returns fields for the record of a request, such as its user. Called when the record is written, so it
   * can read what handlers and inner middleware have set. The fields of {@link AccessRecord} are not
   * replaced. If it throws, the error is printed and the record is not written. Default: no fields.
   */
  readonly fields?: (request: HttpRequest) => AccessFields
  /** Returns true for requests that are not logged, such as health checks. Default: logs all. */
  readonly skip?: (record: AccessRecord) => boolean
}

const LOG: Kind<AccessLogOptions['log']> = {
  expected: 'a function, or a logger with info()',
  accepts: (log) => typeof log === 'function' || typeof (log as AccessLogger | null)?.info === 'function',
  default: undefined,
}
const OPTIONS = {
  log: LOG,
  fields: callback as Kind<AccessLogOptions['fields']>,
  skip: callback as Kind<AccessLogOptions['skip']>,
}

/**
 * Middleware that logs each request. It comes first; `requestId()` may be before or after it.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { accessLog, createApp, use } from 'corespun/http'
 *
 * const seen: string[] = []
 * const log = accessLog({ log: ({ method, path, status }) => void seen.push(`${method} ${path} ${status}`) })
 * await createApp({ routes: use({ '/': 'Hello' }, log) }).inject('/')
 * assert.deepEqual(seen, ['GET / 200'])
 * ```
 */
export function accessLog(options?: AccessLogOptions): Middleware {
  const { log, fields, skip } = optionsOf(options, OPTIONS, wrong, 'accessLog()')
  const write = writerOf(log)
  const middleware: Middleware = async (request, next) => {
    const startMs = performance.now()
    const begun = {
      time: new Date().toISOString(),
      method: request.method,
      path: new URL(request.url).pathname,
      remoteAddress: request.remoteAddress,
      userAgent: request.headers.get('user-agent') ?? undefined,
    }
    const record = (status: number): void => {
      const ms = Math.round((performance.now() - startMs) * 1000) / 1000
      // The id is read now: inner middleware may have set it.
      const entry = { ...begun, requestId: getRequestId(request), status, ms }
      logged('the access log', () =>
        skip?.(entry) === true ? undefined : write({ ...fields?.(request), ...entry }),
      )
    }
    let response: Response
    try {
      response = await next()
    } catch (error) {
      record(isClientDisconnected(request, error) ? CLIENT_DISCONNECTED : statusOf(error))
      throw error
    }
    // Response.error() and a body that has been read become 500.
    record(response.type === 'error' || response.bodyUsed ? 500 : response.status)
    return response
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}

/**
 * Whether the request gets no response, by the app's rule. An inner `timeout()` aborts the signal too, but
 * gets a response.
 */
export function isClientDisconnected({ signal }: HttpRequest, error: unknown): boolean {
  if (error instanceof HttpError && error.code === 'HTTP_CLIENT_DISCONNECTED') return true
  return isAbort(error) && signal.aborted && !(signal.reason instanceof StatusError)
}

function writerOf(log: AccessLogOptions['log']): (record: AccessRecord & AccessFields) => unknown {
  if (log === undefined) return (record) => void process.stdout.write(`${JSON.stringify(record)}\n`)
  if (typeof log === 'function') return log
  return ({ time: _, ...record }) => log.info(record, `${record.method} ${record.path} ${record.status}`)
}
