/**
 * New options of a zone's server: checked by the thread that has them, then sent to all workers.
 *
 * Loaded when they are replaced, and never by a server without TLS.
 */
import { wrong } from '../message/limits.ts'
import { readTls } from '../message/credentials.ts'
import { parseTls, type TlsOptions, withoutBytes } from '../message/tls-options.ts'

/**
 * The call that workers make, with the options as data; all workers accept them or none.
 * @throws {HttpError} As `setTls`.
 */
export function setTlsCall(url: string, id: string, options: TlsOptions | undefined): string {
  const given = options === undefined ? [id] : [id, sendable(options)]
  const words = given.map((value) => JSON.stringify(value)).join(', ')
  return `import(${JSON.stringify(url)}).then((module) => module.setTlsHere(${words}))`
}

function sendable(options: TlsOptions): TlsOptions {
  if (options.sni !== undefined)
    throw wrong('server.setTls(): tls.sni', 'zone: export it from the app module', options.sni, {
      verb: 'cannot be combined with',
    })
  readTls(parseTls(options, 'server.setTls()'))
  return withoutBytes(options)
}
