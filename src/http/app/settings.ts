/**
 * The options of `serve`, parsed once into complete, frozen settings.
 *
 * Unknown names are errors: a misspelled limit must not mean a missing one.
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
} from '../../base/index.ts'
import type { HttpRefusal } from '../message/refusals.ts'
import type { Connection } from '../fetch/connection.ts'
import type { ErrorHandler } from './routes.ts'
import { isNodeHandler } from '../listener/node-handler.ts'
import { type HttpLimits, parseLimits, wrong } from '../message/limits.ts'
import { Proxies, type ProxyOptions, type TrustedProxies } from '../message/proxies.ts'
import type { SharedRooms } from '../websocket/shared-rooms.ts'
import { parseTls, type TlsOptions } from '../message/tls-options.ts'
import { compileRoutes, fetchOf, type Routes } from './routes.ts'

/** Options of an app; at least one of `routes` and `fetch` is required. */
export interface AppOptions<Pattern extends string = string> {
  /** Handlers and constants by pattern; see {@link Routes}. */
  readonly routes?: Routes<Pattern>
  /** A web-standard app for requests that match no route. Default: such requests get 404 or 405. */
  readonly fetch?: (request: Request, connection: Connection) => Response | Promise<Response>
  /**
   * Called with each error that no handler catches. Its return value is the response; if it returns
   * `undefined`, the response is a plain 500, or 4xx if the client caused the error. Default: errors that no
   * client caused are printed to standard error.
   */
  readonly error?: ErrorHandler
  /**
   * The proxies whose `X-Forwarded-*` or `Forwarded` headers state the client: `request.url`,
   * `remoteAddress` and `ip` are then those of the client. Their number (`1`: one in front of this server),
   * their addresses (`['loopback', '10.0.0.0/8']`), a function, or `{ from, header }`. Default: none, since a
   * client that reaches the server directly could claim any address.
   */
  readonly trustProxy?: TrustedProxies | ProxyOptions
}

/** Options of {@link serve} for a server in the calling thread. */
export interface ServeOptions<Pattern extends string = string> extends AppOptions<Pattern> {
  /** TCP port, 0 to 65,535; 0 lets the system choose a free one. Default 3000. */
  readonly port?: number
  /**
   * The address, or the name of an address, to listen on. Default '127.0.0.1', which only this machine can
   * reach; '0.0.0.0' or '::' listens on all interfaces.
   */
  readonly host?: string
  /** The path of a Unix socket to listen on instead of a port; at most 107 bytes. Default: a TCP port. */
  readonly unixPath?: string
  /**
   * The descriptor of a listening socket that this process was started with, instead of an address: 3 for the
   * first socket of systemd's socket activation, or of a program that passes its own. Whoever has opened it
   * keeps it, so connections wait in its queue while no process accepts them. Default: the server opens its
   * own socket.
   */
  readonly fd?: number
  /**
   * Whether other servers with `reusePort`, in this process or another, may listen on the same port
   * (`SO_REUSEPORT`): workers of node:cluster, or the next version of a program. Default: true in a worker of
   * node:cluster, otherwise false, and a port in use is an `HTTP_PORT_TAKEN` error.
   */
  readonly reusePort?: boolean
  /**
   * Whether every connection begins with a header of the PROXY protocol, version 1 or 2, by which a load
   * balancer states the client: its address is then `remoteAddress`. Connections without it are refused, so
   * let no one but the load balancer reach the server. Default false.
   */
  readonly proxyProtocol?: boolean
  /**
   * Serves https: certificates and keys as PEM or files, by name, and the authorities of clients. See
   * {@link TlsOptions}; `server.setTls` replaces them. Default: http.
   */
  readonly tls?: TlsOptions
  /** Limits on requests and connections; each has a default. */
  readonly limits?: HttpLimits
  /**
   * The core that runs the server. Default: `'native'`, or `'node'` (on node:http) if the native core cannot
   * be loaded. The environment variable CORESPUN_HTTP_CORE overrides it. A core that is requested explicitly
   * and cannot be loaded is an `HTTP_CORE` error.
   */
  readonly core?: 'native' | 'node'
  /** How long `close` waits for open requests, in ms; then it cuts the rest. Default 10,000. */
  readonly closeMs?: number
  /**
   * Rooms that this server shares with others, on other machines too: `fleet.rooms('chat')` of
   * corespun/fleet. `publish` then reaches the members of a room at all of them. Default: rooms are those of
   * this server.
   */
  readonly rooms?: SharedRooms | undefined
  /**
   * Called for what the server refuses before any handler: connections, handshakes of TLS, requests, and
   * connections of HTTP/2 that it ends. At most 64 in a turn of the event loop; `leftOut` counts others. The
   * diagnostics channel `corespun:http:refused` has the same messages, in the thread that serves.
   */
  readonly onRefused?: (refusal: HttpRefusal) => void
  /**
   * Whether to print nothing at the start. Default false: one line on standard error has the URL that the
   * server listens on, the number of its workers and its core.
   */
  readonly quiet?: boolean
}

/** Options of `server.close()`. */
export interface CloseOptions {
  /** How long to wait for open requests, in ms; the rest is cut. Default: `closeMs` of `serve`. */
  readonly timeoutMs?: number
  /**
   * How long to go on accepting before that, in ms, while {@link readiness} responds 503: the time that load
   * balancers need to send their requests elsewhere. Default 0.
   */
  readonly delayMs?: number
}

/** Checked {@link ServeOptions}. */
export type Settings = ReturnType<typeof parseSettings>

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 3000

/** Longest path of a Unix socket on Linux, in bytes. */
const UNIX_BYTES_MAX = 107
/** Highest descriptor of a process on Linux (`fs.nr_open`). */
const FD_MAX = 1_048_575

const HOST: Kind<string> = {
  expected: 'an IP address or a host name',
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
const ROOMS: Kind<SharedRooms | undefined> = {
  expected: 'rooms of a fleet, as fleet.rooms(name) returns them',
  accepts: (rooms) => !Array.isArray(rooms) && typeof (rooms as Partial<SharedRooms>)?.join === 'function',
  default: undefined,
}
const CORE = oneOf<'native' | 'node', undefined>(['native', 'node'], undefined)
const APP = {
  routes: anything,
  fetch: anything,
  error: { ...callback, expected: 'a function (cause, request)' } as Kind<ErrorHandler | undefined>,
  trustProxy: anything,
}
const SERVER = {
  port: integer<number | undefined>(0, 65_535, undefined),
  host: HOST,
  unixPath: UNIX_PATH,
  fd: integer<number | undefined>(0, FD_MAX, undefined),
  /** `undefined`: in a worker of node:cluster. */
  reusePort: flag<boolean | undefined>(undefined),
  proxyProtocol: flag(false),
  tls: anything,
  limits: anything,
  core: CORE,
  closeMs: integer(0, TIMER_MS_MAX, 10_000),
  rooms: ROOMS,
  onRefused: { ...callback, expected: 'a function (refusal)' } as Kind<
    ((refusal: HttpRefusal) => void) | undefined
  >,
  quiet: flag(false),
}
const ALL = { ...APP, ...SERVER }
/** The option names of a server, without those that only its app module has. */
export const SERVER_NAMES = [...(Object.keys(SERVER) as (keyof typeof SERVER)[]), 'trustProxy'] as const

export function parseApp(given: unknown) {
  return app(optionsOf(given, APP, wrong, 'createApp()'), 'createApp()')
}

export function parseSettings(given: unknown, forced: string | undefined) {
  if (typeof given === 'function' || typeof given === 'number')
    throw wrong('serve(): options', 'an object, as in serve({ routes, port })', given)
  const settings = optionsOf(given, ALL, wrong, 'serve()')
  const { port, unixPath, fd, tls, limits, core } = settings
  if (unixPath !== undefined && port !== undefined)
    throw wrong('serve(): port', 'unixPath: pass one of them', port, { verb: 'cannot be combined with' })
  if (fd !== undefined && (unixPath ?? port) !== undefined)
    throw wrong('serve(): fd', 'port or unixPath: the socket has its address', fd, {
      verb: 'cannot be combined with',
    })
  const parts = app(settings, 'serve()')
  return Object.freeze({
    ...settings,
    ...parts,
    port: port ?? DEFAULT_PORT,
    tls: tls === undefined ? undefined : parseTls(tls, 'serve()'),
    limits: parseLimits(limits, 'serve()'),
    /** `undefined`: native, or node if the native core cannot be loaded. */
    core:
      valueOfKind('serve()', 'CORESPUN_HTTP_CORE', forced === '' ? undefined : forced, CORE, wrong) ?? core,
    globals: globalsOf(settings.fetch, parts.routes.hasApps),
  })
}

/** Which globals the server replaces; all: also `Request`, `Headers` and `fetch`, for apps. */
function globalsOf(fetch: unknown, hasApps: boolean): 'all' | 'Response' | 'none' {
  if (hasApps) return 'all'
  if (fetch === undefined) return 'Response'
  return isNodeHandler(fetch) ? 'none' : 'all'
}

function app({ routes, fetch, error, trustProxy }: OptionsOf<typeof APP>, call: string) {
  if (routes === undefined && fetch === undefined)
    throw wrong(call, '`routes` or `fetch`', undefined, { verb: 'needs' })
  return {
    routes: compileRoutes(routes === undefined ? {} : routes, call),
    fetch: fetchOf(call, fetch),
    error,
    proxies: trustProxy === undefined ? undefined : new Proxies(trustProxy, call),
  }
}

/** The options of `close`; `timeoutMs` of `serve` if it is absent. */
export function parseClose(given: unknown, timeoutMs: number): Required<CloseOptions> {
  const kinds = { timeoutMs: integer(0, TIMER_MS_MAX, timeoutMs), delayMs: integer(0, TIMER_MS_MAX, 0) }
  return optionsOf(given, kinds, wrong, 'server.close()')
}
