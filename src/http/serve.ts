/**
 * `serve`: the door to both kinds of server, the one in this thread and the one in the workers of a zone.
 *
 * What a zone needs is loaded when one is given: without the native core there are no zones, and a server
 * runs on node:http.
 */
import { type HttpServer, serveHere } from './server.ts'
import type { ServeOptions } from './settings.ts'
import type { ZoneServer } from './cluster/server.ts'
import { parseZoneSettings, type ZoneServeOptions } from './cluster/settings.ts'

/**
 * Serve an app, in this thread or (`zone`) in every worker of a zone; resolves when it accepts connections.
 * @throws {HttpError} `HTTP_ARGUMENT`, `HTTP_ROUTE` or `HTTP_ROUTE_CONFLICT` for settings that are wrong;
 *   `HTTP_PORT_TAKEN` or `HTTP_LISTEN` when the address is not to be had; `HTTP_CORE` when the native core
 *   was asked for and is missing; `HTTP_APP` when the module of a zone's app cannot be used.
 */
export function serve(settings: ZoneServeOptions): Promise<ZoneServer>
export function serve<Pattern extends string>(settings: ServeOptions<Pattern>): Promise<HttpServer>
export async function serve(settings: ServeOptions | ZoneServeOptions): Promise<HttpServer | ZoneServer> {
  if (!isForZone(settings)) return serveHere(settings)
  const parsed = parseZoneSettings(settings, process.env.CORESPUN_HTTP_CORE)
  return (await import('./cluster/server.ts')).serveInZone(parsed)
}

function isForZone(settings: unknown): settings is ZoneServeOptions {
  if (settings === null || typeof settings !== 'object') return false
  const { zone, app } = settings as Partial<ZoneServeOptions>
  return zone !== undefined || app !== undefined
}
