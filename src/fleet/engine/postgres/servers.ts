/**
 * The servers that an address of Postgres names: a primary and its standbys, of which one may be written.
 *
 * Lists of hosts and ports are written as libpq has them, before the database, in the parameters `host` and
 * `port`, or in PGHOST and PGPORT. The package pg takes one host, so each server is an address of its own
 * here; which of them is used is found by asking it (link.ts).
 */
import { wrong } from '../../errors.ts'

const WHERE = /^([^/?#]*)([^?#]*)(?:\?([^#]*))?/
const ATTRS = 'target_session_attrs'
/** All of them are what is done anyway: only a server that may be written is used. */
const WRITTEN: ReadonlySet<string> = new Set(['any', 'read-write', 'primary'])

/**
 * An address, as behind its credentials, for each server.
 * @throws {FleetError} `FLEET_ARGUMENT` for ports that are not as many as hosts, and for standbys.
 */
export function serversOf(where: string, env: NodeJS.ProcessEnv = process.env): string[] {
  const [, authority, path, query = ''] = WHERE.exec(where)!
  const parameters = new URLSearchParams(query)
  const asked = parameters.get(ATTRS)
  if (asked !== null && !WRITTEN.has(asked))
    throw wrong(`connect(): ${ATTRS} of the address`, 'read-write: an engine writes', asked)
  parameters.delete(ATTRS)
  const addressOf = (host: string): string => `${host}${path || '/'}?${parameters.toString()}`
  const named = parameters.get('host')
  const isNamed = named !== null || authority !== ''
  const hosts = (named ?? (authority || env['PGHOST'] || '')).split(',')
  if (hosts.length === 1) return [asked === null ? where : addressOf(authority)]
  const ports = (parameters.get('port') ?? (isNamed ? undefined : env['PGPORT']))?.split(',') ?? []
  if (ports.length > 1 && ports.length !== hosts.length)
    throw wrong('connect(): the address', `one port, or one for each of ${hosts.length} hosts`, ports.length)
  return hosts.map((host, at) => {
    const port = ports[at] ?? ports[0]
    if (port !== undefined) parameters.set('port', port)
    if (named === null && isNamed) return addressOf(host)
    parameters.set('host', host)
    return addressOf('')
  })
}
