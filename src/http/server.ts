/**
 * A server in the calling thread, and `createApp`: the same app without a socket.
 *
 * This file alone chooses the core; the app does not depend on the choice.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, meters, type ServerFigures } from '../base/index.ts'
import { refuseClass } from '../transport/internal.ts'
import { App } from './app/app.ts'
import { isClusterWorker } from './core/cluster-worker.ts'
import type { Constant, Core, CoreAddress, CoreSettings, CoreStats } from './message/core-interface.ts'
import { closing } from './message/closing.ts'
import { Refusals } from './message/refusals.ts'
import { HttpError } from './errors.ts'
import { useGlobals } from './fetch/globals.ts'
import { type Client, inject, type InjectInput, responded } from './app/inject.ts'
import { nativeRequest } from './fetch/request.ts'
import { wrong } from './message/limits.ts'
import { checkRoom, payloadOf } from './websocket/message.ts'
import type { Hub } from './message/hub.ts'
import type { JoinedRooms, SharedRooms } from './websocket/shared-rooms.ts'
import {
  type AppOptions,
  type CloseOptions,
  parseApp,
  parseClose,
  parseSettings,
  type ServeOptions,
  type Settings,
} from './app/settings.ts'
import type { TlsControl } from './tls/control.ts'
import type { TlsOptions, TlsSettings } from './message/tls-options.ts'

/** Counters of a server since it started, and the core it runs on. */
export interface ServerStats extends CoreStats {
  /** The core that runs the server. */
  readonly core: 'native' | 'node'
  /** Why the native core could not be loaded; '' if it runs or the node core was requested. */
  readonly coreReason: string
  /** Number of errors that no handler caught and no client caused. */
  readonly errors: number
}

/** An app that responds to requests without a socket. */
export interface InjectableApp {
  /**
   * Sends a request through the app without a socket and returns the response.
   * @param input A request, a URL, or a path that begins with '/'.
   * @param init As for `new Request(input, init)`.
   */
  inject(input: InjectInput, init?: RequestInit): Promise<Response>
}

/**
 * Creates an app without a server, for tests.
 * @throws {HttpError} `HTTP_ARGUMENT`, `HTTP_ROUTE` or `HTTP_ROUTE_CONFLICT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/user/:id': (request) => ({ id: request.params.id }) } })
 * assert.deepEqual(await (await app.inject('/user/7')).json(), { id: '7' })
 * ```
 */
export function createApp<Pattern extends string>(options: AppOptions<Pattern>): InjectableApp {
  const parts = parseApp(options)
  const app = new App(parts)
  return {
    async inject(input, init) {
      await parts.routes.ready()
      return inject(app.onExchange, input, init)
    },
  }
}

/** The same for `corespun/test`, whose requests have connections. */
export function appOf<Pattern extends string>(options: AppOptions<Pattern>) {
  const parts = parseApp(options)
  const { hub, onExchange } = new App(parts)
  return {
    hub,
    async respond(request: Request, client: Client): Promise<Response | undefined> {
      await parts.routes.ready()
      return responded(onExchange, nativeRequest(request) as Request, client)
    },
  }
}

/**
 * Serve in this thread.
 * @param mayBeExpired Certificates that have expired are a warning: those of a worker that replaces another.
 */
export async function serveHere<Pattern extends string>(
  settings: ServeOptions<Pattern>,
  mayBeExpired = false,
): Promise<HttpServer> {
  const parsed = parseSettings(settings, process.env.CORESPUN_HTTP_CORE)
  const app = new App(parsed)
  await parsed.routes.ready()
  const tls = parsed.tls === undefined ? undefined : await openTls(parsed.tls, mayBeExpired)
  const onFault = (error: unknown): void =>
    process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  const refusals = new Refusals(parsed.onRefused, onFault)
  const constants = parsed.routes.constants()
  const { core, reason } = await openCore(parsed, {
    host: parsed.host,
    port: parsed.port,
    unixPath: parsed.unixPath,
    fd: parsed.fd,
    reusePort: parsed.reusePort === true,
    proxyProtocol: parsed.proxyProtocol,
    tls: tls?.now,
    limits: parsed.limits,
    constants,
    hub: app.hub,
    refusals,
    onExchange: app.onExchange,
    onFault,
  })
  const joined = parsed.rooms === undefined ? undefined : await joinRooms(parsed.rooms, app.hub)
  const address = await core.listen().catch(async (error: unknown) => {
    await joined?.leave()
    return refuseToListen(parsed, error)
  })
  refusals.localPort = address.port
  app.hub.address = address
  const restore = parsed.globals === 'none' ? () => {} : useGlobals(parsed.globals)
  const figures = (): ServerFigures => figuresOf(core, constants)
  meters.servers.add(figures)
  const release = (): void => {
    meters.look?.()
    meters.servers.delete(figures)
    restore()
  }
  tls?.begin(core)
  return new HttpServer({ app, core, address, tls, joined, release, coreReason: reason, settings: parsed })
}

function figuresOf(core: Core, constants: readonly Constant[]): ServerFigures {
  const sent = core.constantCounts?.() ?? []
  const counts = constants.flatMap(({ method, path, status }, index) => [
    { method, route: path, status, count: sent[2 * index] ?? 0 },
    { method: 'HEAD', route: path, status, count: sent[2 * index + 1] ?? 0 },
  ])
  return { ...core.stats(), constants: counts.filter(({ count }) => count > 0) }
}

/** Imported on demand, too. */
async function joinRooms(rooms: SharedRooms, hub: Hub): Promise<JoinedRooms> {
  const { joinHub } = await import('./websocket/shared-rooms.ts')
  return joinHub(rooms, hub)
}

/** Imported on demand: a server without TLS loads neither certificates nor what watches them. */
async function openTls(settings: TlsSettings, mayBeExpired: boolean): Promise<TlsControl> {
  const { TlsControl } = await import('./tls/control.ts')
  return new TlsControl(settings, mayBeExpired)
}

async function openCore(settings: Settings, given: CoreSettings): Promise<{ core: Core; reason: string }> {
  if (settings.core === 'node') return { core: await nodeCore(given), reason: '' }
  const isOfCluster = settings.reusePort === undefined && isClusterWorker()
  // Where the system does not distribute connections over sockets, the primary does.
  if (isOfCluster && settings.core === undefined && process.platform !== 'linux')
    return { core: await nodeCore(given), reason: 'a worker of node:cluster' }
  try {
    // Imported here: without the native core this module works on node:http.
    const { createNativeCore } = await import('./core/native/core.ts')
    return { core: createNativeCore({ ...given, reusePort: given.reusePort || isOfCluster }), reason: '' }
  } catch (error) {
    const reason = messageOf(error)
    if (settings.core === 'native') throw new HttpError('HTTP_CORE', { reason }, { cause: error })
    return { core: await nodeCore(given), reason }
  }
}

async function nodeCore(given: CoreSettings): Promise<Core> {
  if (given.reusePort)
    throw wrong('serve(): reusePort', 'the native core: the node core cannot share a port', true, {
      verb: 'needs',
    })
  const { NodeCore } = await import('./core/node/core.ts')
  return new NodeCore(given, given.tls === undefined ? undefined : await import('./core/node/tls.ts'))
}

function refuseToListen({ host, port, unixPath, fd }: Settings, cause: unknown): never {
  const address = unixPath ?? `${host.includes(':') ? `[${host}]` : host}:${port}`
  const where = fd === undefined ? address : `descriptor ${fd}`
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') throw new HttpError('HTTP_PORT_TAKEN', { where }, { cause })
  throw new HttpError('HTTP_LISTEN', { where, reason: message }, { cause })
}

interface ServerParts {
  readonly app: App
  readonly core: Core
  readonly address: CoreAddress
  readonly tls: TlsControl | undefined
  /** The rooms of other servers. */
  readonly joined: JoinedRooms | undefined
  readonly release: () => void
  readonly coreReason: string
  readonly settings: Pick<Settings, 'closeMs' | 'quiet' | 'fd'>
}

/**
 * A running server, created by {@link serve}. `await using` closes it at the end of its block.
 *
 * @example
 * ```ts
 * import { serve } from 'corespun/http'
 *
 * const server = await serve({ port: 0, routes: { '/': 'Hello' } })
 * console.log(server.url, server.stats().requests)
 * await server.close({ timeoutMs: 1000 })
 * ```
 */
export class HttpServer implements InjectableApp, AsyncDisposable {
  readonly #parts: ServerParts
  #closing: Promise<void> | undefined

  /** @internal */
  constructor(parts: ServerParts) {
    this.#parts = parts
  }

  /**
   * The URL it listens on: `http://127.0.0.1:3000`, `http://0.0.0.0:3000` for all interfaces, `https:` with
   * the option `tls`, or `unix:/path` for a Unix socket.
   */
  get url(): string {
    const { host, port, unixPath } = this.#parts.address
    if (unixPath !== undefined) return `unix:${unixPath}`
    const scheme = this.#parts.tls === undefined ? 'http' : 'https'
    return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  /** The port it listens on; 0 for a Unix socket. */
  get port(): number {
    return this.#parts.address.port
  }

  /** Option of `serve`. @internal */
  get quiet(): boolean {
    return this.#parts.settings.quiet
  }

  /** Option of `serve`. @internal */
  get closeMs(): number {
    return this.#parts.settings.closeMs
  }

  /** See `App.follow`. @internal */
  follow(): void {
    this.#parts.app.follow()
  }

  /** See `App.strayed`. @internal */
  strayed(error: unknown): boolean {
    return this.#parts.app.strayed(error)
  }

  /** The port that others are to listen on with it; undefined: its socket was inherited. @internal */
  get sharedPort(): number | undefined {
    return this.#parts.settings.fd === undefined ? this.port : undefined
  }

  /** See `Core.member`. @internal */
  get member(): number {
    return this.#parts.core.member ?? 0
  }

  /** Returns the counters of the server. */
  stats(): ServerStats {
    const { app, core, coreReason } = this.#parts
    return { ...core.stats(), core: core.kind, coreReason, errors: app.errorsCount }
  }

  /**
   * Replaces certificates and settings of TLS, for connections that begin from now on; open ones keep theirs.
   * Without an argument, the files of the option `tls` are read again.
   * @throws {HttpError} `HTTP_ARGUMENT` for invalid options and for a server without the option `tls`;
   *   `HTTP_TLS_UNREADABLE`, `HTTP_TLS_CERTIFICATE`, `HTTP_TLS_EXPIRED` or `HTTP_TLS_KEY` for certificates
   *   and keys that cannot be used. Nothing changes then.
   */
  async setTls(options?: TlsOptions): Promise<void> {
    const { tls } = this.#parts
    if (tls === undefined)
      throw wrong('server.setTls()', 'a server with the option `tls`', undefined, { verb: 'needs' })
    tls.set(options)
  }

  /** @internal */
  get hub(): Hub {
    return this.#parts.app.hub
  }

  /**
   * Sends a message to all WebSockets in a room; does nothing after the server has closed.
   * @throws {HttpError} `HTTP_ARGUMENT` for a value that is neither text nor bytes.
   */
  publish(room: string, message: string | ArrayBuffer | ArrayBufferView): void {
    checkRoom(room, 'server.publish()')
    this.#parts.app.hub.publish(room, payloadOf(message, 'server.publish()'), undefined)
  }

  /** Sends a request through the app without a socket; also works after the server has closed. */
  inject(input: InjectInput, init?: RequestInit): Promise<Response> {
    return inject(this.#parts.app.onExchange, input, init)
  }

  /** See `Core.announceStop`. @internal */
  announceStop(): void {
    this.#parts.core.announceStop()
  }

  /**
   * Stops accepting connections, after `delayMs`, finishes open requests and closes the connections. Resolves
   * when the last one has closed; a second call returns the promise of the first.
   * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
   */
  close(options: CloseOptions = {}): Promise<void> {
    const { timeoutMs, delayMs } = parseClose(options, this.#parts.settings.closeMs)
    const cut = (): number => this.#parts.core.stats().cut
    const close = (): Promise<void> => this.#close(timeoutMs, delayMs).finally(this.#parts.release)
    return (this.#closing ??= closing(this.url, { timeoutMs, delayMs }, cut, close))
  }

  async #close(timeoutMs: number, delayMs: number): Promise<void> {
    const { core, tls, joined } = this.#parts
    if (delayMs > 0) {
      core.announceStop()
      await delay(delayMs)
    }
    tls?.close()
    await core.stop(timeoutMs)
    await joined?.leave()
  }

  /** Calls {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

refuseClass(HttpServer, 'a server belongs to its thread; send its url')
