/**
 * `napa.runtime`: which provider writes the log.
 *
 * napajs loads other providers as C++ add-ons, which do not run here.
 */
import { setLogging } from './log.ts'

/** Settings of the process. */
export interface PlatformSettings {
  /** `console`, the default, or `nop`, which writes nothing. */
  loggingProvider?: string
  /** `nop`, the default of napajs: metrics are those of `corespun/metrics`. */
  metricProvider?: string
}

/**
 * Sets the settings of this thread and of zones that it creates afterwards.
 * @throws {TypeError} for a provider that is a module: napajs's are C++ add-ons.
 */
export function setPlatformSettings({ loggingProvider, metricProvider = 'nop' }: PlatformSettings): void {
  if (metricProvider !== '' && metricProvider !== 'nop')
    throw new TypeError(`metricProvider: expected "nop", received ${metricProvider}; see corespun/metrics`)
  if (loggingProvider === undefined) return
  if (loggingProvider !== '' && loggingProvider !== 'console' && loggingProvider !== 'nop')
    throw new TypeError(`loggingProvider: expected "console" or "nop", received ${loggingProvider}`)
  setLogging(loggingProvider === 'nop' ? 'nop' : 'console')
}
