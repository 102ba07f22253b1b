/**
 * What `serve` is given to run an app in every worker of a zone, checked before any worker hears of it.
 *
 * Functions with captured variables cannot travel to other threads, so the app is named by its module.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyZone } from '../../zone/index.ts'
import { type Kind, TIMER_MS_MAX, anything, integer, optionsOf, text, valueOfKind } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { parseSettings, SERVER_NAMES, type ServeOptions } from '../settings.ts'
import type { AppSource } from './app-module.ts'
import type { Job } from './protocol.ts'

/** What `serve` takes for a zone: what it takes otherwise, but for the app itself. */
export interface ZoneServeOptions extends Omit<ServeOptions, 'routes' | 'fetch' | 'error'> {
  /**
   * Whose workers serve: a zone with the executor `fixed` or `work-stealing`, or the name of one. Stop the
   * server before the zone is closed.
   */
  readonly zone: AnyZone | string
  /**
   * The module that exports the app, loaded in every worker: a URL such as `new URL('./app.js',
   * import.meta.url)`, or an absolute path. Its default export, its export `app`, or the module itself is
   * what `serve` takes (`routes`, `fetch`, `error`, `limits`, ... and `close`, called in each worker at the
   * end), an app with `fetch`, or a function. What is given here goes before what it says.
   */
  readonly app: string | URL
  /** Which export is the app. Default: see `app`. */
  readonly appExport?: string
  /**
   * When given, the export is a function that makes the app, or a promise of it: called in every worker with
   * these, which are copied as the arguments of a task are.
   */
  readonly appArgs?: readonly unknown[]
  /**
   * Longest time in ms for which a worker may not return to its event loop while connections wait for it:
   * then it is ended and replaced, and its open connections with it. After a second without a turn the other
   * workers accept what it would. On the native core. 1000 to 2,147,483,647, default 30,000.
   */
  readonly handlerMsMax?: number
}

/** The default of `handlerMsMax`. */
export const HANDLER_MS_MAX = 30_000

/** Complete settings. */
export interface ZoneSettings {
  readonly zone: AnyZone | string
  readonly source: AppSource
  /** What was given, and nothing else: the module may say the rest. */
  readonly settings: Job['settings']
  readonly drainMs: number
  readonly core: 'native' | 'node' | undefined
  readonly handlerMsMax: number | undefined
}

const HANDLER_MS = integer<number | undefined>(1000, TIMER_MS_MAX, undefined)
const KINDS = {
  ...Object.fromEntries(SERVER_NAMES.map((name) => [name, anything])),
  zone: {
    expected: 'a zone or the name of one',
    accepts: (zone) =>
      zone !== null && (typeof zone === 'object' || (typeof zone === 'string' && zone !== '')),
    default: undefined,
  } as Kind<AnyZone | string | undefined>,
  app: anything,
  appExport: text<string | undefined>(undefined),
  appArgs: {
    expected: 'an array, what the export is called with',
    accepts: Array.isArray,
    default: undefined,
  } as Kind<readonly unknown[] | undefined>,
  handlerMsMax: HANDLER_MS,
  routes: anything,
  fetch: anything,
  error: anything,
}

/** Check `given`. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseZoneSettings(given: object, forced: string | undefined): ZoneSettings {
  const { zone, app, appExport, appArgs, handlerMsMax, ...rest } = optionsOf(given, KINDS, wrong, 'serve()')
  for (const name of ['routes', 'fetch', 'error'] as const)
    if (rest[name] !== undefined)
      throw wrong(
        `serve(): ${name}`,
        'absent with a zone, whose app is a module: export it there',
        rest[name],
      )
  const passed = Object.entries(rest).filter(([, value]) => value !== undefined)
  const settings = Object.fromEntries(passed) as Job['settings']
  const { drainMs, core } = parseSettings({ ...settings, routes: {} }, forced)
  if (zone === undefined) throw wrong('serve(): zone', KINDS.zone.expected, zone)
  return { zone, source: { app: urlOf(app), appExport, appArgs }, settings, drainMs, core, handlerMsMax }
}

/** A `handlerMsMax`, checked; undefined if there is none. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseHandlerMsMax(given: unknown): number | undefined {
  return valueOfKind('serve()', 'handlerMsMax', given, HANDLER_MS, wrong)
}

function urlOf(app: unknown): string {
  if (app instanceof URL) return app.href
  if (typeof app === 'string' && isAbsolute(app)) return pathToFileURL(app).href
  if (typeof app === 'string' && /^(file|data):/.test(app) && URL.canParse(app)) return app
  throw wrong('serve(): app', "new URL('./app.js', import.meta.url), or an absolute path", app)
}
