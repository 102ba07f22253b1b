/**
 * The options of `serve` with a zone, checked before they are sent to any worker.
 *
 * Functions with captured variables cannot be sent to other threads, so the app is named by its module.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyZone } from '../../zone/index.ts'
import { type Kind, TIMER_MS_MAX, anything, integer, optionsOf, text, valueOfKind } from '../../base/index.ts'
import { wrong } from '../message/limits.ts'
import { parseSettings, SERVER_NAMES, type ServeOptions } from '../app/settings.ts'
import { type TlsOptions, withoutBytes } from '../message/tls-options.ts'
import type { SharedRooms } from '../websocket/shared-rooms.ts'
import type { AppSource } from './app-module.ts'
import type { Job } from './protocol.ts'

/** The options of `serve` with a zone: those without one, except for the app itself. */
export interface ZoneServeOptions extends Omit<ServeOptions, 'routes' | 'fetch' | 'error' | 'onRefused'> {
  /**
   * The zone whose workers serve, or its name; its executor is `fixed` or `work-stealing`. Close the server
   * before the zone.
   */
  readonly zone: AnyZone | string
  /**
   * The module that exports the app, loaded in every worker: a URL such as `new URL('./app.js',
   * import.meta.url)`, or an absolute path. Its default export, its export
   * `app`, or the module itself contains options of `serve` (`routes`, `fetch`, `error`, `onRefused`, ... and
   * `close`, which each worker calls at the end), or is an app with `fetch`, or a function. Options passed to
   * `serve` take precedence.
   */
  readonly app: string | URL
  /** Which export is the app. Default: see `app`. */
  readonly appExport?: string
  /**
   * If present, the export is a function that returns the app, or a promise of it: each worker calls it with
   * these arguments, which are copied like those of a task.
   */
  readonly appArgs?: readonly unknown[]
  /**
   * Longest time in ms for which a worker may not return to its event loop while connections wait for it.
   * Then it is terminated and replaced, which closes its connections. After a second, other workers accept
   * its new connections. Native core only. 1000 to 2,147,483,647, default 30,000.
   */
  readonly handlerMsMax?: number
}

/** The default of `handlerMsMax`. */
export const HANDLER_MS_MAX = 30_000

/** Complete settings. */
export interface ClusterSettings {
  readonly zone: AnyZone | string
  readonly source: AppSource
  /** The options that were passed; the module may contain others. */
  readonly settings: Job['settings']
  readonly closeMs: number
  readonly core: 'native' | 'node' | undefined
  readonly handlerMsMax: number | undefined
  /** Option of `serve`, which is not sent to workers. */
  readonly rooms: SharedRooms | undefined
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
    expected: 'an array of arguments for the export',
    accepts: Array.isArray,
    default: undefined,
  } as Kind<readonly unknown[] | undefined>,
  handlerMsMax: HANDLER_MS,
  routes: anything,
  fetch: anything,
  error: anything,
}

/** Check `given`. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseZoneSettings(given: object, forced: string | undefined): ClusterSettings {
  const all = optionsOf(given, KINDS, wrong, 'serve()')
  const { zone, app, appExport, appArgs, handlerMsMax, ...rest } = all
  const passedTo = given as Readonly<Record<string, unknown>>
  for (const name of ['routes', 'fetch', 'error', 'onRefused'])
    if (passedTo[name] !== undefined)
      throw wrong(`serve(): ${name}`, 'zone: export it from the app module', passedTo[name], {
        verb: 'cannot be combined with',
      })
  const { sni } = (rest as { tls?: TlsOptions }).tls ?? {}
  if (sni !== undefined)
    throw wrong('serve(): tls.sni', 'zone: export it from the app module', sni, {
      verb: 'cannot be combined with',
    })
  const passed = Object.entries(rest).filter(([, value]) => value !== undefined)
  const { rooms: shared, ...settings } = Object.fromEntries(passed) as Partial<ServeOptions>
  const { closeMs, core, rooms } = parseSettings({ ...settings, rooms: shared, routes: {} }, forced)
  if (settings.tls !== undefined) Object.assign(settings, { tls: withoutBytes(settings.tls) })
  if (zone === undefined) throw wrong('serve(): zone', KINDS.zone.expected, zone)
  return {
    zone,
    source: { app: urlOf(app), appExport, appArgs },
    settings,
    closeMs,
    core,
    handlerMsMax,
    rooms,
  }
}

/** A checked `handlerMsMax`; undefined if absent. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseHandlerMsMax(given: unknown): number | undefined {
  return valueOfKind('serve()', 'handlerMsMax', given, HANDLER_MS, wrong)
}

function urlOf(app: unknown): string {
  const url = typeof app === 'string' && isAbsolute(app) ? pathToFileURL(app) : app
  if ((typeof url === 'string' || url instanceof URL) && /^(file|data):/.test(String(url))) return String(url)
  throw wrong('serve(): app', "new URL('./app.js', import.meta.url), or an absolute path", app)
}
