/**
 * The app that a module exports.
 *
 * A module exports its app in one of five forms: options of `serve`, a function, an app with `fetch` such as
 * hono's, an app for the `(req, res)` of node:http such as one of express, or `routes` and `fetch` as exports
 * of the module itself. A promise of an app is awaited: a CommonJS module cannot await it.
 */
import { loadReason, CorespunError } from '../../base/index.ts'
import type { FetchApp } from '../app/routes.ts'
import { HttpError } from '../errors.ts'
import { has, isNest, isNodeApp, isServer as isNodeServer, type Nest } from '../listener/node-app.ts'
import type { ServeOptions } from '../app/settings.ts'

/** An app as a module exports it: options of `serve`, and what to do at the end. */
export interface ModuleApp extends Partial<ServeOptions> {
  /** Called in each worker when it stops, with a promise of the end of the open requests. */
  readonly close?: (drained: Promise<void>) => void | Promise<void>
  /** As for `serve({zone})`, which takes precedence. */
  readonly handlerMsMax?: number
}

type Exports = Readonly<Record<string, unknown>>

/** Where an app is found. */
export interface AppSource {
  /** The URL for `import()`. */
  readonly app: string
  /** Default: `default`, `app`, or the module itself, the first that is an app. */
  readonly appExport?: string | undefined
  /** If present, the export (`default`) is a function that returns the app for these arguments. */
  readonly appArgs?: readonly unknown[] | undefined
}

/**
 * Import a module and find its app.
 * @throws {HttpError} `HTTP_APP` when it does not load, does not export an app, or fails to make one; errors
 * of
 *   Corespun are thrown unchanged.
 */
export async function loadApp({ app: url, appExport: name, appArgs }: AppSource): Promise<ModuleApp> {
  let exports: Exports
  try {
    exports = writtenIn((await import(url)) as Exports)
  } catch (cause) {
    throw new HttpError(
      'HTTP_APP',
      { app: url, reason: `failed to load: ${loadReason(cause, url)}` },
      { cause },
    )
  }
  const app =
    appArgs === undefined
      ? await appIn(exports, name, url)
      : await made(exports[name ?? 'default'], appArgs, url)
  if (app !== undefined) return app
  const names = Object.keys(exports).filter((key) => key !== 'module.exports')
  const which = name === undefined ? 'default export' : `export "${name}"`
  const exported = await settled(exports[name ?? 'default'], url)
  if (appArgs === undefined && isServer(exported)) {
    await exported.close() // Or it holds its port without a use.
    const reason = `${which} is a running server: export the options that you pass to serve()`
    throw new HttpError('HTTP_APP', { app: url, reason })
  }
  const problem =
    appArgs === undefined
      ? 'is not an app: export `routes`, `fetch`, a function (request) => Response, or an app for (req, res)'
      : 'is not a function that returns an app'
  const reason = `${which} ${problem}; it exports ${names.join(', ') || 'nothing'}`
  throw new HttpError('HTTP_APP', { app: url, reason })
}

/** The exports of an ES module that a compiler has made CommonJS: Node has them as the default export. */
function writtenIn(exports: Exports): Exports {
  const whole = exports['default']
  return isCompiled(whole) ? whole : exports
}

function isCompiled(value: unknown): value is Exports {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '__esModule')
}

/** A server, of this copy of the package or another. */
function isServer(value: unknown): value is { close(): Promise<void> } {
  if (value === null || typeof value !== 'object' || !(Symbol.asyncDispose in value)) return false
  return 'port' in value && typeof (value as { close?: unknown }).close === 'function'
}

/** The app that `make` returns for `args`; undefined if it is not an app. */
async function made(make: unknown, args: readonly unknown[], url: string): Promise<ModuleApp | undefined> {
  if (typeof make !== 'function') return undefined
  const app = await begun(async () => Reflect.apply(make, undefined, args), url, 'the function that makes it')
  return appOf(app, url)
}

/** @throws {HttpError} `HTTP_APP` for an error of the program's. */
async function begun<T>(begin: () => Promise<T>, url: string, what: string): Promise<T> {
  try {
    return await begin()
  } catch (cause) {
    if (cause instanceof CorespunError) throw cause
    throw new HttpError('HTTP_APP', { app: url, reason: `${what} failed: ${loadReason(cause)}` }, { cause })
  }
}

/** What is exported, or what its promise resolves to. Not any thenable: an app of fastify is one. */
async function settled(exported: unknown, url: string): Promise<unknown> {
  return exported instanceof Promise ? begun(() => exported, url, 'the promise of it') : exported
}

/** The app among exports, under `name` or one of the usual names. */
async function appIn(
  exports: Exports,
  name: string | undefined,
  url: string,
): Promise<ModuleApp | undefined> {
  const candidates = name === undefined ? [exports['default'], exports['app'], exports] : [exports[name]]
  for (const candidate of candidates) {
    const app = await appOf(await settled(candidate, url), url)
    if (app !== undefined) return app
  }
  return undefined
}

/**
 * A function, options, an app with `fetch` such as hono's, or one for node:http; undefined for other values.
 */
async function appOf(value: unknown, url: string): Promise<ModuleApp | undefined> {
  if (isNodeApp(value)) {
    const { handlerOf, targetOf } = await import('../listener/node-handler.ts')
    const close = closeOf(value) // which adds hooks, so before it is ready
    const target = await begun(async () => targetOf(value), url, 'its start')
    return { fetch: handlerOf(target), ...(close === undefined ? {} : { close }) }
  }
  if (typeof value === 'function') return { fetch: value as NonNullable<ModuleApp['fetch']> }
  if (value === null || typeof value !== 'object') return undefined
  const { routes, fetch, close } = value as Exports
  const isModule = Object.prototype.toString.call(value) === '[object Module]' || isCompiled(value)
  const isPlain = !isModule && Object.getPrototypeOf(value) === Object.prototype
  if (isPlain && (routes !== undefined || fetch !== undefined)) return value
  if (isModule && (routes !== undefined || fetch !== undefined)) {
    const { error, limits, trustProxy } = value as Exports
    const parts = Object.entries({ routes, fetch, error, limits, trustProxy, close })
    return Object.fromEntries(parts.filter(([, part]) => part !== undefined)) as ModuleApp
  }
  if (typeof fetch !== 'function') return undefined
  return { fetch: (request, connection) => (value as FetchApp).fetch(request, connection) }
}

type Close = NonNullable<ModuleApp['close']>

/** Closes an app of Nest or fastify as where it listens; undefined for others. */
function closeOf(app: object): Close | undefined {
  if (isNest(app)) return closingNest(app)
  if (isNodeServer(app)) return () => void app.emit('close') // what has attached to it ends its connections
  return has(app, 'addHook') && has(app, 'close') ? closingFastify(app as Closable) : undefined
}

/** Between its hooks Nest closes its adapter, which takes until the open requests have ended. */
function closingNest(app: Nest): Close {
  const adapter = app.getHttpAdapter()
  const close = adapter.close.bind(adapter)
  return async (drained) => {
    adapter.close = () => drained.then(close)
    await app.close()
  }
}

/** An app of fastify. */
interface Closable {
  addHook(name: string, hook: () => Promise<void>): unknown
  close(): PromiseLike<unknown>
}

/**
 * Hooks `preClose` run at once, `onClose` after the open requests. One that was ready takes no hook any more,
 * so all of its hooks run then.
 */
function closingFastify(app: Closable): Close {
  let drained: Promise<void> | undefined
  let isHooked = true
  try {
    app.addHook('preClose', async () => drained)
  } catch {
    isHooked = false
  }
  return async (after) => {
    drained = after
    if (!isHooked) await after
    await app.close()
  }
}
