/**
 * The app that a module exports.
 *
 * A module says what it serves in one of four ways, all of them what people write anyway: settings of
 * `serve`, a function, an app with `fetch` such as hono's, or `routes` and `fetch` as exports of the module
 * itself.
 */
import { HttpError } from '../errors.ts'
import type { ServeSettings } from '../settings.ts'

/** What a module may export to be served: what `serve` takes, and what to do at the end. */
export interface ModuleApp extends Partial<ServeSettings> {
  /** Called in each worker when it stops, before the open requests are waited for. */
  readonly close?: () => void | Promise<void>
}

type Exports = Readonly<Record<string, unknown>>

/**
 * Import a module and find its app.
 * @param name The export; undefined: `default`, `app`, or the module itself, the first that is an app.
 * @throws {HttpError} `HTTP_APP` when it does not load, or has no app there.
 */
export async function loadApp(url: string, name: string | undefined): Promise<ModuleApp> {
  let exports: Exports
  try {
    exports = (await import(url)) as Exports
  } catch (cause) {
    throw new HttpError('HTTP_APP', { app: url, reason: `it did not load: ${reasonOf(cause)}` }, { cause })
  }
  const app = appIn(exports, name)
  if (app !== undefined) return app
  const names = Object.keys(exports).filter((key) => key !== 'module.exports')
  const found = `it exports ${names.join(', ') || 'nothing'}`
  const reason = `its ${name === undefined ? 'default export' : `export ${name}`} is no app; ${found}`
  throw new HttpError('HTTP_APP', { app: url, reason })
}

/** The app among exports, under `name` or one of the usual names; undefined when there is none. */
export function appIn(exports: Exports, name: string | undefined): ModuleApp | undefined {
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
  if (isPlain && (routes !== undefined || fetch !== undefined)) return value as ModuleApp
  if (isModule && (routes !== undefined || fetch !== undefined)) {
    const { error, limits } = value as Exports
    const given = Object.entries({ routes, fetch, error, limits, close })
    return Object.fromEntries(given.filter(([, part]) => part !== undefined)) as ModuleApp
  }
  if (typeof fetch !== 'function') return undefined
  return { fetch: (request) => (value as { fetch(request: Request): Response }).fetch(request) }
}

/** What was thrown, in one line. */
export function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  return text.replace(/\s+/g, ' ').trim()
}
