/**
 * One record for each request when its answer is decided: who, what, how it ended, how long it took.
 *
 * Records go to anything with `info(record, message)`, such as a pino logger, or to a function, or as lines
 * of JSON to standard output. Pino is only a dependency of the tests.
 */
import { HttpError, statusOf } from '../errors.ts'
import { type Kind, callback, optionsOf } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { getRequestId } from '../app/carried.ts'
import { logged } from '../app/logged.ts'
import { EVERYWHERE, type Middleware } from './middleware.ts'
import { StatusError } from '../app/status-error.ts'

/** What logs of servers write where the client closed its connection before it had its answer. */
const CLIENT_GONE = 499

/** One request. */
export interface AccessRecord {
  /** When it came, as ISO 8601. */
  readonly time: string
  /** Where `requestId()` is in use, further out or further in. */
  readonly requestId: string | undefined
  readonly method: string
  /** The path, without the query. */
  readonly path: string
  /**
   * Of its answer. For an error that nothing further in answered, what `jsonErrors()` makes of it; 499
   * where the client went before that. A stream that fails before its first byte is told with the status it
   * was given, and answered with 500: `jsonErrors({ log })` tells of it.
   */
  readonly status: number
  /** From the request to its answer's head, in ms. A streamed body goes on after that. */
  readonly ms: number
  readonly remoteAddress: string
  readonly userAgent: string | undefined
}

/** A logger such as pino's. */
export interface AccessLogger {
  /** @param message Such as `GET /user/7 200`. */
  info(record: Omit<AccessRecord, 'time'>, message: string): void
}

/** What {@link accessLog} takes. */
export interface AccessLogOptions {
  /**
   * A logger such as pino's, which gets records without their `time` because it gives its lines one itself;
   * or a function. One that throws or rejects is told on the console. Default: a line of JSON on standard
   * output.
   */
  readonly log?: AccessLogger | ((record: AccessRecord) => void)
  /** Requests that are not told: a health check, say. */
  readonly skip?: (record: AccessRecord) => boolean
}

const LOG: Kind<AccessLogOptions['log']> = {
  expected: 'a function, or a logger with info()',
  accepts: (log) => typeof log === 'function' || typeof (log as AccessLogger | null)?.info === 'function',
  default: undefined,
}
const OPTIONS = { log: LOG, skip: callback as Kind<AccessLogOptions['skip']> }

/**
 * Tells of each request. Put it before all others; `requestId()` may stand on either side of it.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function accessLog(options?: AccessLogOptions): Middleware {
  const { log, skip } = optionsOf(options, OPTIONS, wrong, 'accessLog()')
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
    const tell = (status: number): void => {
      const ms = Math.round((performance.now() - startMs) * 1000) / 1000
      // Now: what stands further in may have given it.
      const record = { ...begun, requestId: getRequestId(request), status, ms }
      logged('the access log', () => (skip?.(record) === true ? undefined : write(record)))
    }
    let response: Response
    try {
      response = await next()
    } catch (error) {
      tell(isGone(request, error) ? CLIENT_GONE : statusOf(error))
      throw error
    }
    // A network error, and a body that was read already, are answered with 500.
    tell(response.type === 'error' || response.bodyUsed ? 500 : response.status)
    return response
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}

/**
 * Whether nobody is answered, as the app decides it: a client that only stopped sending gets the answer to
 * any other error. A time limit further in aborts the signal too, and is answered.
 */
function isGone({ signal }: HttpRequest, error: unknown): boolean {
  if (error instanceof HttpError && error.code === 'HTTP_CLIENT_GONE') return true
  const isAbort = error instanceof Error && error.name === 'AbortError'
  return isAbort && signal.aborted && !(signal.reason instanceof StatusError)
}

function writerOf(log: AccessLogOptions['log']): (record: AccessRecord) => unknown {
  if (log === undefined) return (record) => void process.stdout.write(`${JSON.stringify(record)}\n`)
  if (typeof log === 'function') return log
  return ({ time: _, ...record }) => log.info(record, `${record.method} ${record.path} ${record.status}`)
}
