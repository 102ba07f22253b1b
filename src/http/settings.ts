/**
 * What `serve` is given, checked once at the door: inside there are no optionals.
 *
 * A name that is not known is refused, so that a misspelt limit is not a missing one.
 */
import { ownOptions } from '../base/index.ts'
import type { CoreLimits } from './core/core.ts'
import type { ErrorHandler } from './app/routes.ts'
import { type HttpLimits, integerIn, parseLimits, TIMER_MS_MAX, wrong } from './limits.ts'
import { compileRoutes, type CompiledRoutes, fetchOf, type Routes } from './app/routes.ts'

/** What an app is made from: at least one of `routes` and `fetch`. */
export interface AppSettings<Pattern extends string = string> {
  /** Patterns and what they stand for; see {@link Routes}. */
  readonly routes?: Routes<Pattern>
  /** Answers what no route answers: any web-standard app. Without it that is 404 and 405. */
  readonly fetch?: (request: Request) => Response | Promise<Response>
  /**
   * Told each error that no handler caught. What it gives is the answer; nothing: a plain 500 (or 4xx when
   * the client is to blame). Default: an error that no client caused is printed.
   */
  readonly error?: ErrorHandler
}

/** What `serve` takes. */
export interface ServeSettings<Pattern extends string = string> extends AppSettings<Pattern> {
  /** 0 to 65535; 0 lets the system choose. Default 3000. */
  readonly port?: number
  /**
   * An address of this machine, or a name of one. Default '127.0.0.1', which this machine alone reaches;
   * '0.0.0.0' or '::' for every network.
   */
  readonly host?: string
  /** A path to listen on instead of a port. */
  readonly unixPath?: string
  /** Connections that wait in the kernel to be accepted. Default 511. */
  readonly backlog?: number
  /**
   * Whether others that say the same may serve the same port (`SO_REUSEPORT`): threads and processes, such as
   * the workers of node:cluster, or the version that replaces this one. Default false: the port is this
   * server's alone, and one that is taken is `HTTP_PORT_TAKEN`.
   */
  readonly reusePort?: boolean
  /** Every limit; each has a default. */
  readonly limits?: HttpLimits
  /**
   * Which core carries the server. Default: `'native'`, and `'node'` (on node:http) where that cannot be
   * loaded. The variable SKEIN_HTTP_CORE forces one. Named here or there, a core that is missing is an error.
   */
  readonly core?: 'native' | 'node'
  /** How long `stop` waits for what was accepted, in ms. Default 10,000. */
  readonly drainMs?: number
  /**
   * Whether the global `Request`, `Response`, `Headers` and `fetch` are Skein's while the server runs; web
   * frameworks are slower without. Default: true if there is `fetch` or a route is an app with one.
   */
  readonly globals?: boolean
}

/** Complete settings. */
export interface Settings {
  readonly routes: CompiledRoutes
  readonly fetch: ((request: Request) => unknown) | undefined
  readonly error: ErrorHandler | undefined
  readonly port: number
  readonly host: string
  readonly unixPath: string | undefined
  readonly backlog: number
  readonly reusePort: boolean
  readonly limits: CoreLimits
  /** Undefined: native where it can be had. */
  readonly core: 'native' | 'node' | undefined
  readonly drainMs: number
  readonly globals: boolean
}

/** Where a server listens that is not asked to listen elsewhere. */
export const DEFAULT_HOST = '127.0.0.1'
/** The port of such a server. */
export const DEFAULT_PORT = 3000

const APP_NAMES = ['routes', 'fetch', 'error']
const NAMES = [...APP_NAMES].concat([
  'port',
  'host',
  'unixPath',
  'backlog',
  'reusePort',
  'limits',
  'core',
  'drainMs',
  'globals',
])
/** Longest path of a Unix socket on Linux, in bytes. */
const UNIX_BYTES_MAX = 107

/** Check the settings of an app alone. @throws {HttpError} `HTTP_SETTING` or those of routes. */
export function parseApp(given: unknown): Pick<Settings, 'routes' | 'fetch' | 'error'> {
  return app(fieldsOf(given, APP_NAMES))
}

/** Check `given` and fill in what is absent. @throws {HttpError} `HTTP_SETTING` or those of routes. */
export function parseSettings(given: unknown, forced: string | undefined): Settings {
  const fields = fieldsOf(given, NAMES)
  const { host = DEFAULT_HOST, unixPath, reusePort = false } = fields
  if (typeof host !== 'string' || host === '' || /[\0\s]/.test(host))
    throw wrong('host', 'an address or a name', host)
  if (unixPath !== undefined) {
    const isPath = typeof unixPath === 'string' && unixPath !== '' && !unixPath.includes('\0')
    if (!isPath || Buffer.byteLength(unixPath) > UNIX_BYTES_MAX)
      throw wrong('unixPath', `a path of 1 to ${UNIX_BYTES_MAX} bytes`, unixPath)
    if (fields.port !== undefined) throw wrong('port', 'absent when there is a unixPath', fields.port)
  }
  if (typeof reusePort !== 'boolean') throw wrong('reusePort', 'true or false', reusePort)
  const parts = app(fields)
  const { globals = parts.fetch !== undefined || parts.routes.hasApps } = fields
  if (typeof globals !== 'boolean') throw wrong('globals', 'true or false', globals)
  return Object.freeze({
    ...parts,
    port: integerIn('port', fields.port, { least: 0, most: 65_535, default: DEFAULT_PORT }),
    host,
    unixPath,
    backlog: integerIn('backlog', fields.backlog, { least: 1, most: 65_535, default: 511 }),
    reusePort,
    limits: parseLimits(fields.limits),
    core: coreOf(fields.core, forced),
    drainMs: integerIn('drainMs', fields.drainMs, { least: 0, most: TIMER_MS_MAX, default: 10_000 }),
    globals,
  })
}

function fieldsOf(given: unknown, names: readonly string[], what = 'settings'): Record<string, unknown> {
  return ownOptions(given ?? null, names, wrong, what, '')
}

function app({
  routes,
  fetch,
  error,
}: Record<string, unknown>): Pick<Settings, 'routes' | 'fetch' | 'error'> {
  if (routes === undefined && fetch === undefined) throw wrong('routes', 'given, or fetch', routes)
  if (error !== undefined && typeof error !== 'function')
    throw wrong('error', 'a function (cause, request)', error)
  return {
    routes: compileRoutes(routes === undefined ? {} : routes),
    fetch: fetchOf(fetch),
    error: error as ErrorHandler | undefined,
  }
}

function coreOf(given: unknown, forced: string | undefined): Settings['core'] {
  for (const [name, value] of [
    ['core', given],
    ['SKEIN_HTTP_CORE', forced === '' ? undefined : forced],
  ] as const) {
    if (value !== undefined && value !== 'native' && value !== 'node')
      throw wrong(name, "'native' or 'node'", value)
  }
  return ((forced === '' ? undefined : forced) ?? given) as Settings['core']
}

/** The patience that `stop` is given, checked. @throws {HttpError} `HTTP_SETTING`. */
export function parseDrainMs(given: unknown, otherwise: number): number {
  const { drainMs } = fieldsOf(given, ['drainMs'], 'options')
  return integerIn('drainMs', drainMs, { least: 0, most: TIMER_MS_MAX, default: otherwise })
}
