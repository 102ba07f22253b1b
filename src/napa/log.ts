/**
 * `napa.log`: a line on the console of the process, from any thread.
 *
 * The provider `nop` writes nothing; zones created afterwards have it too, by their environment.
 */

/** Writes a message; with a section, with a section and the id of a trace. */
export interface LogFunction {
  /** Writes a message. */
  (message: string): void
  /** Writes a message of a section. */
  (section: string, message: string): void
  /** Writes a message of a section and a trace. */
  (section: string, traceId: string, message: string): void
}

/** `log` itself writes at the level `info`. */
export interface Log extends LogFunction {
  /** Writes at the level `error`. */
  readonly err: LogFunction
  /** Writes at the level `warn`. */
  readonly warn: LogFunction
  /** Writes at the level `info`. */
  readonly info: LogFunction
  /** Writes at the level `debug`. */
  readonly debug: LogFunction
}

const VARIABLE = 'CORESPUN_NAPA_LOG'
let isSilent = process.env[VARIABLE] === 'nop'

/** @internal */
export function setLogging(provider: 'console' | 'nop'): void {
  isSilent = provider === 'nop'
}

/** The option of a zone whose workers log as this thread. @internal */
export function loggingOf(): { readonly env?: Readonly<Record<string, string>> } {
  return isSilent ? { env: { ...(process.env as Record<string, string>), [VARIABLE]: 'nop' } } : {}
}

function writer(level: 'error' | 'warn' | 'info' | 'debug'): LogFunction {
  return (...parts: readonly (string | undefined)[]) => {
    if (isSilent) return
    const given = parts.filter((part) => part !== undefined)
    const labels = given.slice(0, -1).map((label) => `[${label}] `)
    console[level](`${labels.join('')}${given.at(-1)}`)
  }
}

const info = writer('info')

/**
 * Writes a line to the console, at the level `info`; `log.err`, `warn`, `info` and `debug` at theirs.
 * @example
 * ```ts
 * import { log } from 'corespun/napa'
 *
 * log('started') // started
 * log('init', 'started') // [init] started
 * log.info('request', 'A1', 'served') // [request] [A1] served
 * ```
 */
export const log: Log = Object.assign((...parts: [string]) => info(...parts), {
  err: writer('error'),
  warn: writer('warn'),
  info,
  debug: writer('debug'),
})
