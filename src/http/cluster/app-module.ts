/**
 * The app that a module exports.
 *
 * A module says what it serves in one of four ways, all of them what people write anyway: settings of
 * `serve`, a function, an app with `fetch` such as hono's, or `routes` and `fetch` as exports of the module
 * itself.
 */
import { loadReason, CorespunError } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import type { ServeOptions } from '../settings.ts'

/** What a module may export to be served: what `serve` takes, and what to do at the end. */
export interface ModuleApp extends Partial<ServeOptions> {
  /** Called in each worker when it stops, before the open requests are waited for. */
  readonly close?: () => void | Promise<void>
  /** As for `serve({zone})`, which goes before it. */
  readonly handlerMsMax?: number
}

type Exports = Readonly<Record<string, unknown>>

/** Where an app is to be found. */
export interface AppSource {
  /** What `import()` is given. */
  readonly app: string
  /** Default: `default`, `app`, or the module itself, the first that is an app. */
  readonly appExport?: string | undefined
  /** When given, the export (`default`) is a function that makes the app from these. */
  readonly appArgs?: readonly unknown[] | undefined
}

/**
 * Import a module and find its app.
 * @throws {HttpError} `HTTP_APP` when it does not load, has no app there, or fails to make one; an error of
 *   Corespun's from within its making is thrown as it is.
 */
export async function loadApp({ app: url, appExport: name, appArgs }: AppSource): Promise<ModuleApp> {
  let exports: Exports
  try {
    exports = (await import(url)) as Exports
  } catch (cause) {
    throw new HttpError('HTTP_APP', { app: url, reason: `did not load: ${loadReason(cause)}` }, { cause })
  }
  const app =
    appArgs === undefined ? appIn(exports, name) : await made(exports[name ?? 'default'], appArgs, url)
  if (app !== undefined) return app
  const names = Object.keys(exports).filter((key) => key !== 'module.exports')
  const which = name === undefined ? 'default export' : `export "${name}"`
  const wanted =
    appArgs === undefined
      ? 'is no app: export {routes}, {fetch} or a function (request) => Response'
      : 'is no function that makes an app'
  const reason = `${which} ${wanted}; it exports ${names.join(', ') || 'nothing'}`
  throw new HttpError('HTTP_APP', { app: url, reason })
}

/** What the function `make` gives for `args`; undefined when that, or `make` itself, is of no use. */
async function made(make: unknown, args: readonly unknown[], url: string): Promise<ModuleApp | undefined> {
  if (typeof make !== 'function') return undefined
  try {
    return appOf(await Reflect.apply(make, undefined, args))
  } catch (cause) {
    if (cause instanceof CorespunError) throw cause
    throw new HttpError(
      'HTTP_APP',
      { app: url, reason: `could not be made: ${loadReason(cause)}` },
      { cause },
    )
  }
}

/** The app among exports, under `name` or one of the usual names; undefined when there is none. */
function appIn(exports: Exports, name: string | undefined): ModuleApp | undefined {
  const candidates = name === undefined ? [exports['default'], exports['app'], exports] : [exports[name]]
  for (const candidate of candidates) {
    const app = appOf(candidate)
    if (app !== undefined) return app
  }
  return undefined
}

/** A function, settings, or an app with `fetch` such as hono's; undefined for anything else. */
function appOf(value: unknown): ModuleApp | undefined {
  if (typeof value === 'function') return { fetch: value as NonNullable<ModuleApp['fetch']> }
  if (value === null || typeof value !== 'object') return undefined
  const { routes, fetch, close } = value as Exports
  const isModule = Object.prototype.toString.call(value) === '[object Module]'
  const isPlain = Object.getPrototypeOf(value) === Object.prototype
  if (isPlain && (routes !== undefined || fetch !== undefined)) return value
  if (isModule && (routes !== undefined || fetch !== undefined)) {
    const { error, limits } = value as Exports
    const given = Object.entries({ routes, fetch, error, limits, close })
    return Object.fromEntries(given.filter(([, part]) => part !== undefined)) as ModuleApp
  }
  if (typeof fetch !== 'function') return undefined
  return { fetch: (request) => (value as { fetch(request: Request): Response }).fetch(request) }
}
