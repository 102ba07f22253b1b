/**
 * `serve`: a server in the calling thread, or in every worker of a zone.
 *
 * The root of the package exports it too, so this file imports the server on demand: a program that serves
 * nothing loads neither the app nor Node's own Request and Response. The cluster is imported only for a zone:
 * zones need the native core, a server without one runs on node:http.
 */
import { servingLine } from './serving-line.ts'
import type { HttpServer } from './server.ts'
import type { ServeOptions } from './app/settings.ts'
import type { VersionOrder } from './cluster/protocol.ts'
import type { ZoneServer } from './cluster/cluster-server.ts'
import type { ZoneServeOptions } from './cluster/cluster-settings.ts'

/**
 * Starts an HTTP server, in the calling thread or, with `zone` and `app`, in every worker of a zone. Listens
 * on 127.0.0.1:3000 by default. Resolves when the server accepts connections, after one line on standard
 * error has stated the URL, the number of workers and the core (`quiet: true` omits it).
 * @throws {HttpError} `HTTP_ARGUMENT`, `HTTP_ROUTE` or `HTTP_ROUTE_CONFLICT` for invalid options;
 *   `HTTP_PORT_TAKEN` or `HTTP_LISTEN` if the address cannot be used; `HTTP_CORE` if the native core is
 *   requested and cannot be loaded; `HTTP_APP` if the app module of a zone fails to load;
 *   `HTTP_TLS_UNREADABLE`, `HTTP_TLS_CERTIFICATE`, `HTTP_TLS_EXPIRED` or `HTTP_TLS_KEY` for certificates
 *   and keys that cannot be used.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { serve } from 'corespun/http'
 *
 * const server = await serve({
 *   port: 0,
 *   routes: { '/': 'Hello', '/user/:id': (request) => ({ id: request.params.id }) },
 * })
 * assert.deepEqual(await (await fetch(`${server.url}/user/7`)).json(), { id: '7' })
 * await server.close()
 * ```
 */
export function serve(options: ZoneServeOptions): Promise<ZoneServer>
/** Starts a server in this thread: routes, an app with `fetch`, or both. */
export function serve<Pattern extends string>(options: ServeOptions<Pattern>): Promise<HttpServer>
export async function serve(options: ServeOptions | ZoneServeOptions): Promise<HttpServer | ZoneServer> {
  if (!isForZone(options)) {
    const { serveHere } = await import('./server.ts')
    const server = await serveHere(options)
    if (!server.quiet) console.error(servingLine(server.url, server.stats().core))
    return server
  }
  return serveVersion(options, undefined)
}

/**
 * As {@link serve} with a zone, for a program whose next version listens on the same port before this one
 * stops: also with one worker, where the core can share a port.
 * @throws {HttpError} As `serve`.
 */
export async function serveVersion(
  options: ZoneServeOptions,
  order: VersionOrder | undefined,
): Promise<ZoneServer> {
  const { parseZoneSettings } = await import('./cluster/cluster-settings.ts')
  const parsed = parseZoneSettings(options, process.env.CORESPUN_HTTP_CORE)
  return (await import('./cluster/cluster-server.ts')).serveInZone(parsed, order)
}

/**
 * A certificate for localhost, 127.0.0.1 and ::1, signed by itself: for development and tests. It is kept in
 * `corespun/dev-tls.pem` of the user's cache folder for 90 days, so that clients have to trust it once.
 *
 * @example
 * ```ts
 * import { developmentTls, serve } from 'corespun/http'
 *
 * const server = await serve({ port: 0, tls: await developmentTls(), routes: { '/': 'Hello' } })
 * console.log(server.url) // https://127.0.0.1:...
 * await server.close()
 * ```
 */
export async function developmentTls(): Promise<{ readonly cert: string; readonly key: string }> {
  return (await import('./tls/development.ts')).developmentTls()
}

function isForZone(options: unknown): options is ZoneServeOptions {
  if (options === null || typeof options !== 'object') return false
  const { zone, app } = options as Partial<ZoneServeOptions>
  return zone !== undefined || app !== undefined
}
