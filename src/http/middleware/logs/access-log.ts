/**
 * Access log: one record for each request, when its response has ended.
 *
 * It is part of Corespun because only the server sees which requests failed outside of handlers, matched no
 * route or lost their client. Defaults: lines of JSON to standard output, every request.
 */
import { HttpError } from '../../errors.ts'
import { type Kind, callback, flag, isAbort, optionsOf } from '../../../base/index.ts'
import { type CpuTime, currentTrace } from '../../../zone/index.ts'
import { checkedTrace, continueCpu } from '../../../zone/internal.ts'
import { wrong } from '../../message/limits.ts'
import type { HttpRequest } from '../../app/routes.ts'
import { getRequestId } from '../../app/carried.ts'
import { logged, onClosed, recordFailure, takeRecord } from '../../app/logged.ts'
import { EVERYWHERE, type Middleware, type Next } from '../../app/middleware.ts'
import { measuredRequest } from './server-timing.ts'
import { StatusError } from '../../app/status-error.ts'
import { watched } from './watched-body.ts'

/** The status that server logs use for a client that disconnects before the response (nginx). */
const CLIENT_DISCONNECTED = 499
const NO_TRACE = { tracestate: undefined, baggage: undefined }

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
   * The response status; for an error, and for a stream that fails before its first byte, that of the
   * response to the error. 499 if the client disconnects before the response.
   */
  readonly status: number
  /**
   * Bytes of the response's body: of a stream, those that were read of it. A file is recorded when the core
   * begins to send it, with its whole length.
   */
  readonly bytes: number
  /**
   * Whether the response ended early: its stream failed, or the client has disconnected. False for a whole
   * body and a file that the core has begun to send, also if the client leaves before their end.
   */
  readonly aborted: boolean
  /** Time from the request to the end of its response, in ms; a whole body ends when the core has it. */
  readonly ms: number
  /** With `cpu`: the CPU time of the handler, its stream, and all tasks that they have called, in ms. */
  readonly cpuMs: number | undefined
  /** The trace that the request is part of, 32 hexadecimal digits; `undefined` without one. */
  readonly traceId: string | undefined
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
  /** Whether `cpuMs` is measured, as by `measureCpu()` of corespun/zone. Default: false. */
  readonly cpu?: boolean
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
  cpu: flag(false),
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
  const { log, fields, skip, cpu } = optionsOf(options, OPTIONS, wrong, 'accessLog()')
  const write = writerOf(log)
  const middleware: Middleware = cpu
    ? (request, next) => measuredRequest(request, (used) => respond(request, next, used))
    : (request, next) => respond(request, next, undefined)
  async function respond(request: HttpRequest, next: Next, used: CpuTime | undefined): Promise<Response> {
    const startMs = performance.now()
    const begun = begin(request)
    const record = (status: number, bytes: number, aborted: boolean): void => {
      const ms = rounded(performance.now() - startMs)
      const cpuMs = used === undefined ? undefined : rounded(used.cpuMs)
      // The id is read now: inner middleware may have set it.
      const entry = { ...begun, requestId: getRequestId(request), status, bytes, aborted, ms, cpuMs }
      logged('the access log', () =>
        skip?.(entry) === true ? undefined : write({ ...fields?.(request), ...entry }),
      )
    }
    // What it receives then is known to the app, also if the handler never returns.
    const watch = (): void => recordFailure(request, (status, bytes) => record(status, bytes, false))
    const failed = (why: unknown): void => {
      if (!isClientDisconnected(request, why)) return watch()
      record(CLIENT_DISCONNECTED, 0, true)
    }
    watch()
    onClosed(request, () => {
      // The handler may never settle.
      if (takeRecord(request) !== undefined) record(CLIENT_DISCONNECTED, 0, true)
    })
    let response: Response
    try {
      response = await next()
    } catch (error) {
      if (takeRecord(request) !== undefined) failed(error)
      throw error
    }
    // It has failed meanwhile, by an error that its handler has left behind, or its connection has closed.
    if (takeRecord(request) === undefined) return response
    const { status } = response
    // Response.error() and a body that has been read become 500.
    if (response.type === 'error' || response.bodyUsed) record(500, 0, false)
    else
      return watched(response, request.method === 'HEAD', {
        ended({ bytes, hasBegun, failure }) {
          // Without a chunk no head was sent: the client gets the response to the error.
          if (failure?.why !== undefined && !hasBegun) failed(failure.why)
          else record(status, bytes, failure !== undefined)
        },
        within: (body) => (used === undefined ? body() : continueCpu(used, body)),
      })
    return response
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}

function begin(
  request: HttpRequest,
): Pick<AccessRecord, 'time' | 'method' | 'path' | 'traceId' | 'remoteAddress' | 'userAgent'> {
  const { headers } = request
  const trace =
    currentTrace() ?? checkedTrace({ ...NO_TRACE, traceparent: headers.get('traceparent') ?? undefined })
  return {
    time: new Date().toISOString(),
    method: request.method,
    path: new URL(request.url).pathname,
    traceId: trace?.traceparent?.slice(3, 35),
    remoteAddress: request.remoteAddress,
    userAgent: headers.get('user-agent') ?? undefined,
  }
}

/** To µs. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
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
