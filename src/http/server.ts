/**
 * A server in this thread: from settings to its end; and `createApp`: the same app without a socket.
 *
 * Which core carries a server is decided here, once; nothing behind it knows.
 */
import { App } from './app/app.ts'
import type { Core, CoreAddress, CoreSettings, CoreStats } from './core/core.ts'
import { HttpError } from './errors.ts'
import { useGlobals } from './fetch/globals.ts'
import { inject, type Injected } from './app/inject.ts'
import { wrong } from './limits.ts'
import { NodeCore } from './core/node/core.ts'
import {
  type AppOptions,
  parseApp,
  parseDrainMs,
  parseSettings,
  type ServeOptions,
  type Settings,
} from './settings.ts'

/** What a server has counted, and which core it runs on. */
export interface ServerStats extends CoreStats {
  readonly core: 'native' | 'node'
  /** Why it is not the native core although nobody asked for another; '' otherwise. */
  readonly coreReason: string
  /** Errors that no handler caught and no client caused. */
  readonly errors: number
}

/** How long to wait for what was accepted. */
export interface StopOptions {
  /** In ms; then what is left is cut. Default: the setting of the same name. */
  readonly drainMs?: number
}

/** An app that answers requests given to it by hand. */
export interface InjectableApp {
  /**
   * Answer a request without a socket, on the same way through the app.
   * @param input A request, a URL, or a path beginning with '/'.
   * @param init As for `new Request(input, init)`.
   */
  inject(input: Injected, init?: RequestInit): Promise<Response>
}

/** Build an app without a server: for tests. @throws {HttpError} As `serve`, for its part of the settings. */
export function createApp<Pattern extends string>(settings: AppOptions<Pattern>): InjectableApp {
  const parts = parseApp(settings)
  const app = new App(parts)
  return {
    async inject(input, init) {
      await parts.routes.ready()
      return inject(app.onExchange, input, init)
    },
  }
}

/** Serve in this thread; see `serve`. @throws {HttpError} As there. */
export async function serveHere<Pattern extends string>(
  settings: ServeOptions<Pattern>,
): Promise<HttpServer> {
  const parsed = parseSettings(settings, process.env.CORESPUN_HTTP_CORE)
  const app = new App(parsed)
  await parsed.routes.ready()
  const { core, reason } = await openCore(parsed, {
    host: parsed.host,
    port: parsed.port,
    unixPath: parsed.unixPath,
    backlog: parsed.backlog,
    reusePort: parsed.reusePort,
    limits: parsed.limits,
    constants: parsed.routes.constants(),
    onExchange: app.onExchange,
    onFault: (error) => process.emitWarning(error instanceof Error ? error : new Error(String(error))),
  })
  const address = await core.listen().catch((error: unknown) => refuseToListen(parsed, error))
  const release = parsed.globals ? useGlobals() : () => {}
  return new HttpServer({ app, core, address, release, coreReason: reason, drainMs: parsed.drainMs })
}

async function openCore(settings: Settings, given: CoreSettings): Promise<{ core: Core; reason: string }> {
  if (settings.core === 'node') return { core: nodeCore(given), reason: '' }
  try {
    // Loaded when wanted: without the native core this module works on node:http.
    const { createNativeCore } = await import('./core/native/core.ts')
    return { core: createNativeCore(given), reason: '' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (settings.core === 'native') throw new HttpError('HTTP_CORE', { reason }, { cause: error })
    return { core: nodeCore(given), reason }
  }
}

/** @throws {HttpError} `HTTP_ARGUMENT` when node:http is asked to share a port. */
function nodeCore(given: CoreSettings): Core {
  if (given.reusePort)
    throw wrong('serve(): reusePort', 'absent with the node core, which does not share a port', true)
  return new NodeCore(given)
}

/** @throws {HttpError} `HTTP_PORT_TAKEN` or `HTTP_LISTEN`, whatever a core calls it. */
function refuseToListen({ host, port, unixPath }: Settings, cause: unknown): never {
  const where = unixPath ?? `${host.includes(':') ? `[${host}]` : host}:${port}`
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') throw new HttpError('HTTP_PORT_TAKEN', { where }, { cause })
  throw new HttpError('HTTP_LISTEN', { where, reason: message }, { cause })
}

interface ServerParts {
  readonly app: App
  readonly core: Core
  readonly address: CoreAddress
  readonly release: () => void
  readonly coreReason: string
  readonly drainMs: number
}

/** A running server. `await using` stops it at the end of its block. */
export class HttpServer implements InjectableApp, AsyncDisposable {
  readonly #parts: ServerParts
  #stopping: Promise<void> | undefined

  /** Made by `serve`. */
  constructor(parts: ServerParts) {
    this.#parts = parts
  }

  /**
   * Where it listens: `http://127.0.0.1:3000`, `http://0.0.0.0:3000` for every network; `unix:/path` for a
   * socket of the file system.
   */
  get url(): string {
    const { host, port, unixPath } = this.#parts.address
    if (unixPath !== undefined) return `unix:${unixPath}`
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  /** The port it listens on; 0 on a path. */
  get port(): number {
    return this.#parts.address.port
  }

  /** See `Core.member`. @internal */
  get member(): number {
    return this.#parts.core.member ?? 0
  }

  /** What it has counted so far. */
  stats(): ServerStats {
    const { app, core, coreReason } = this.#parts
    return { ...core.stats(), core: core.kind, coreReason, errors: app.errorsCount }
  }

  /** See {@link InjectableApp.inject}. Works also when the server has stopped. */
  inject(input: Injected, init?: RequestInit): Promise<Response> {
    return inject(this.#parts.app.onExchange, input, init)
  }

  /**
   * Stop accepting, finish what was accepted, close. Resolves when no connection is left; a second call waits
   * for the first.
   * @throws {HttpError} `HTTP_ARGUMENT` for a `drainMs` that is no time, and for other options.
   */
  stop(options: StopOptions = {}): Promise<void> {
    const patience = parseDrainMs(options, this.#parts.drainMs)
    return (this.#stopping ??= this.#parts.core.stop(patience).finally(this.#parts.release))
  }

  /** As {@link stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
