/**
 * One record for each request when its answer is decided: who, what, how it ended, how long it took.
 *
 * Records go to anything with `info(record, message)`, such as a pino logger, or to a function, or as lines
 * of JSON to standard output. Pino is nobody's dependency here.
 */
import { wrong } from '../limits.ts'
import { requestIdOf } from './carried.ts'
import { EVERYWHERE, type Middleware } from './middleware.ts'
import { errorStatus } from './status-error.ts'

/** One request. */
export interface AccessRecord {
  /** When it came, as ISO 8601. */
  readonly time: string
  /** Where `requestId()` is in use, further out. */
  readonly requestId: string | undefined
  readonly method: string
  /** The path, without the query. */
  readonly path: string
  /** Of its answer; for an error that nothing further in answered, what `errorAnswers()` makes of it. */
  readonly status: number
  /** From the request to its answer's head, in ms. A streamed body goes on after that. */
  readonly ms: number
  readonly remoteAddress: string
  readonly userAgent: string | undefined
}

/** What {@link accessLog} takes. */
export interface AccessLogOptions {
  /** A logger such as pino's, or a function. Default: a line of JSON on standard output. */
  readonly log?: { info(record: AccessRecord, message: string): void } | ((record: AccessRecord) => void)
  /** Requests that are not told: a health check, say. */
  readonly skip?: (record: AccessRecord) => boolean
}

/**
 * Tells of each request. Put it behind `requestId()` and before all others.
 * @throws {HttpError} `HTTP_SETTING`.
 */
export function accessLog(options: AccessLogOptions = {}): Middleware {
  const write = writerOf(options.log)
  const { skip } = options
  if (skip !== undefined && typeof skip !== 'function') throw wrong('skip', 'a function', skip)
  const middleware: Middleware = async (request, next) => {
    const startMs = performance.now()
    const begun = {
      time: new Date().toISOString(),
      requestId: requestIdOf(request),
      method: request.method,
      path: new URL(request.url).pathname,
      remoteAddress: request.remoteAddress,
      userAgent: request.headers.get('user-agent') ?? undefined,
    }
    const tell = (status: number): void => {
      const record = { ...begun, status, ms: Math.round((performance.now() - startMs) * 1000) / 1000 }
      try {
        if (skip?.(record) !== true) write(record)
      } catch (error) {
        console.error('skein/http: the access log failed:', error) // and the request has its answer
      }
    }
    let answer: Response
    try {
      answer = await next()
    } catch (error) {
      tell(errorStatus(error))
      throw error
    }
    tell(answer.status)
    return answer
  }
  return Object.assign(middleware, { [EVERYWHERE]: true })
}

function writerOf(log: AccessLogOptions['log']): (record: AccessRecord) => void {
  if (log === undefined) return (record) => void process.stdout.write(`${JSON.stringify(record)}\n`)
  if (typeof log === 'function') return log
  if (log === null || typeof log !== 'object' || typeof log.info !== 'function')
    throw wrong('log', 'a function, or a logger with info()', log)
  return (record) => log.info(record, `${record.method} ${record.path} ${record.status}`)
}
