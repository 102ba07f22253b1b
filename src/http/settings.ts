/**
 * What `serve` is given, checked once at the door: inside there are no optionals.
 *
 * A name that is not known is refused, so that a misspelt limit is not a missing one.
 */
import {
  type Kind,
  type OptionsOf,
  TIMER_MS_MAX,
  anything,
  callback,
  flag,
  integer,
  oneOf,
  optionsOf,
  valueOfKind,
} from '../base/index.ts'
import type { CoreLimits } from './core/core.ts'
import type { ErrorHandler } from './app/routes.ts'
import { type HttpLimits, parseLimits, wrong } from './limits.ts'
import { compileRoutes, type CompiledRoutes, fetchOf, type Routes } from './app/routes.ts'

/** What an app is made from: at least one of `routes` and `fetch`. */
export interface AppOptions<Pattern extends string = string> {
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
export interface ServeOptions<Pattern extends string = string> extends AppOptions<Pattern> {
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
   * loaded. The variable CORESPUN_HTTP_CORE forces one. Named here or there, a core that is missing is an
   * error.
   */
  readonly core?: 'native' | 'node'
  /** How long `stop` waits for what was accepted, in ms. Default 10,000. */
  readonly drainMs?: number
  /**
   * Whether the global `Request`, `Response`, `Headers` and `fetch` are Corespun's while the server runs; web
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

/** Longest path of a Unix socket on Linux, in bytes. */
const UNIX_BYTES_MAX = 107

const HOST: Kind<string> = {
  expected: 'an address or a name',
  accepts: (host) => typeof host === 'string' && host !== '' && !/[\0\s]/.test(host),
  default: DEFAULT_HOST,
}
const UNIX_PATH: Kind<string | undefined> = {
  expected: `a path of 1 to ${UNIX_BYTES_MAX} bytes`,
  accepts: (path) =>
    typeof path === 'string' &&
    path !== '' &&
    !path.includes('\0') &&
    Buffer.byteLength(path) <= UNIX_BYTES_MAX,
  default: undefined,
}
const CORE = oneOf<'native' | 'node', undefined>(['native', 'node'], undefined)
const APP = {
  routes: anything,
  fetch: anything,
  error: { ...callback, expected: 'a function (cause, request)' } as Kind<ErrorHandler | undefined>,
}
const SERVER = {
  port: integer<number | undefined>(0, 65_535, undefined),
  host: HOST,
  unixPath: UNIX_PATH,
  backlog: integer(1, 65_535, 511),
  reusePort: flag(false),
  limits: anything,
  core: CORE,
  drainMs: integer(0, TIMER_MS_MAX, 10_000),
  globals: flag<boolean | undefined>(undefined),
}
const ALL = { ...APP, ...SERVER }
/** The names of what a server is made from besides its app. */
export const SERVER_NAMES = Object.keys(SERVER) as readonly (keyof typeof SERVER)[]

/** Check the settings of an app alone. @throws {HttpError} `HTTP_ARGUMENT` or those of routes. */
export function parseApp(given: unknown): Pick<Settings, 'routes' | 'fetch' | 'error'> {
  return app(optionsOf(given ?? null, APP, wrong, 'createApp()'), 'createApp()')
}

/** Check `given` and fill in what is absent. @throws {HttpError} `HTTP_ARGUMENT` or those of routes. */
export function parseSettings(given: unknown, forced: string | undefined): Settings {
  const settings = optionsOf(given ?? null, ALL, wrong, 'serve()')
  const { port, unixPath, limits, core } = settings
  if (unixPath !== undefined && port !== undefined)
    throw wrong('serve(): port', 'absent when there is a unixPath', port)
  const parts = app(settings, 'serve()')
  return Object.freeze({
    ...settings,
    ...parts,
    port: port ?? DEFAULT_PORT,
    limits: parseLimits(limits, 'serve()'),
    core:
      valueOfKind('serve()', 'CORESPUN_HTTP_CORE', forced === '' ? undefined : forced, CORE, wrong) ?? core,
    globals: settings.globals ?? (parts.fetch !== undefined || parts.routes.hasApps),
  })
}

function app(
  { routes, fetch, error }: OptionsOf<typeof APP>,
  call: string,
): Pick<Settings, 'routes' | 'fetch' | 'error'> {
  if (routes === undefined && fetch === undefined) throw wrong(`${call}: routes`, 'given, or fetch', routes)
  return { routes: compileRoutes(routes === undefined ? {} : routes), fetch: fetchOf(call, fetch), error }
}

/** The patience that `stop` is given, checked. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseDrainMs(given: unknown, otherwise: number): number {
  const drainMs = integer(0, TIMER_MS_MAX, otherwise)
  return optionsOf(given, { drainMs }, wrong, 'server.stop()').drainMs
}
