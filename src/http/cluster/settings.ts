/**
 * What `serve` is given to run an app in every worker of a zone, checked before any worker hears of it.
 *
 * Functions with captured variables cannot travel to other threads, so the app is named by its module.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { NodeZone, Zone } from '../../zone/index.ts'
import { ownOptions } from '../../base/index.ts'
import { integerIn, TIMER_MS_MAX, wrong } from '../limits.ts'
import { parseSettings, type ServeSettings } from '../settings.ts'
import type { AppSource } from './app-module.ts'
import type { Job } from './protocol.ts'

/** What `serve` takes for a zone: what it takes otherwise, but for the app itself. */
export interface ZoneServeSettings extends Omit<ServeSettings, 'routes' | 'fetch' | 'error'> {
  /**
   * Whose workers serve: a zone with the executor `fixed` or `work-stealing`, or the name of one. Stop the
   * server before the zone is closed.
   */
  readonly zone: Zone | string
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

/** Bounds of `handlerMsMax`. */
const HANDLER_MS = { least: 1000, most: TIMER_MS_MAX }
/** Its default. */
export const HANDLER_MS_MAX = 30_000

/** A `handlerMsMax`, checked; undefined if there is none. @throws {HttpError} `HTTP_SETTING`. */
export function parseHandlerMsMax(given: unknown): number | undefined {
  if (given === undefined) return undefined
  return integerIn('handlerMsMax', given, { ...HANDLER_MS, default: HANDLER_MS_MAX })
}

/** Complete settings. */
export interface ZoneSettings {
  readonly zone: Zone | NodeZone | string
  readonly source: AppSource
  /** What was given, and nothing else: the module may say the rest. */
  readonly settings: Job['settings']
  readonly drainMs: number
  readonly core: 'native' | 'node' | undefined
  readonly handlerMsMax: number | undefined
}

const PASSED_ON = [
  'port',
  'host',
  'unixPath',
  'backlog',
  'reusePort',
  'limits',
  'core',
  'drainMs',
  'globals',
] as const
const NAMES = ['zone', 'app', 'appExport', 'appArgs', 'handlerMsMax', ...PASSED_ON] as const

/** Absent here: what is undefined counts as that. */
const APP = ['routes', 'fetch', 'error'] as const

/** Check `given`. @throws {HttpError} `HTTP_SETTING`. */
export function parseZoneSettings(given: object, forced: string | undefined): ZoneSettings {
  for (const name of APP) {
    if (!Object.hasOwn(given, name) || (given as never)[name] === undefined) continue
    throw wrong(name, 'absent with a zone, whose app is a module: export it there', (given as never)[name])
  }
  const fields = ownOptions(given, [...NAMES, ...APP], wrong, 'settings', '')
  const passed = PASSED_ON.filter((name) => fields[name] !== undefined)
  const settings = Object.fromEntries(passed.map((name) => [name, fields[name]])) as Job['settings']
  const { drainMs, core } = parseSettings({ ...settings, routes: {} }, forced)
  const { zone, appExport, appArgs } = fields
  if ((typeof zone !== 'string' && typeof zone !== 'object') || zone === '' || zone === null)
    throw wrong('zone', 'a zone or the name of one', zone)
  if (appExport !== undefined && (typeof appExport !== 'string' || appExport === ''))
    throw wrong('appExport', 'the name of an export', appExport)
  if (appArgs !== undefined && !Array.isArray(appArgs))
    throw wrong('appArgs', 'an array, what the export is called with', appArgs)
  return {
    zone: zone as Zone | string,
    source: { app: urlOf(fields.app), appExport, appArgs },
    settings,
    drainMs,
    core,
    handlerMsMax: parseHandlerMsMax(fields['handlerMsMax']),
  }
}

function urlOf(app: unknown): string {
  if (app instanceof URL) return app.href
  if (typeof app === 'string' && isAbsolute(app)) return pathToFileURL(app).href
  if (typeof app === 'string' && /^(file|data):/.test(app) && URL.canParse(app)) return app
  throw wrong('app', "new URL('./app.js', import.meta.url), or an absolute path", app)
}
