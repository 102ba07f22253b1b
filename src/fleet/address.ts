/**
 * The address of a fleet: its engine, its servers, and the credentials that it may have.
 *
 * Credentials leave the address here, so that no message, fact or log that names servers has them.
 */
import { resolve } from 'node:path'
import { wrong } from './errors.ts'
import type { ConnectOptions } from './settings.ts'

/** What an address of servers can name a user by. */
interface Identity {
  readonly user: string | undefined
  readonly password: string | undefined
  readonly token: string | undefined
}

/** An address, taken apart. */
export interface Address extends Identity {
  readonly scheme: 'memory' | 'sqlite' | 'postgres' | 'nats' | 'tls'
  /**
   * With the scheme, without credentials; of `memory:` its name, of `sqlite:` the path of its file, of
   * `postgres:` what follows the credentials.
   */
  readonly servers: readonly string[]
}

const NOBODY: Identity = { user: undefined, password: undefined, token: undefined }
const EXPECTED =
  "'memory:', a file as in 'sqlite:work.db', a database as in 'postgres://host/database', " +
  "or servers as in 'nats://a:4222,b:4222'"
/** Credentials, and then host, database and parameters; all of them may be absent. */
const POSTGRES = /^postgres(?:ql)?:(?:\/\/|$)(?:([^/?#]*)@)?(\S*)$/
/** A host, in brackets too, and a port. */
const SERVER = /^(?:\[[\da-f:.]+\]|[^\s:@/?#[\]]+)(?::\d{1,5})?\/?$/i

/** @throws {FleetError} `FLEET_ARGUMENT`, without what may be a password. */
export function addressOf(address: unknown): Address {
  const text = typeof address === 'string' ? address : ''
  const [, scheme, rest = ''] = /^(memory|nats|tls):(?:\/\/)?(.*)$/s.exec(text) ?? []
  if (scheme === 'memory') return { scheme, servers: [rest], ...NOBODY }
  const refused = (): Error => wrong('connect(): the address', EXPECTED, shown(address))
  const [, file] = /^sqlite:(.+)$/s.exec(text) ?? []
  // What SQLite takes for a URI or for its own memory is not the path of a file; `//work.db` would be a file
  // in the root, where the other addresses have a host.
  if (file !== undefined && !/^(:|file:|\0|\/\/(?!\/))/.test(file))
    return { scheme: 'sqlite', servers: [file], ...NOBODY }
  const [, credentials, where] = POSTGRES.exec(text) ?? []
  if (where !== undefined) {
    // A password with a slash that is not encoded would be the name of the database.
    if (/^[^?#]*@/.test(where)) throw refused()
    const identity = credentials === undefined ? NOBODY : userIn(credentials, refused)
    return { scheme: 'postgres', servers: [where], ...identity }
  }
  if (scheme === undefined) throw refused()
  let identity = NOBODY
  const servers = rest.split(',').map((each) => {
    const name = each.trim().replace(/^(nats|tls):\/\//, '')
    const at = name.lastIndexOf('@')
    if (!SERVER.test(name.slice(at + 1))) throw refused()
    if (at >= 0) identity = sameAs(identity, identityIn(name.slice(0, at), refused))
    return `${scheme}://${name.slice(at + 1)}`
  })
  return { scheme: scheme as 'nats' | 'tls', servers, ...identity }
}

/** Credentials of one address, as clients of NATS read them: a user and its password, or a token. */
function identityIn(written: string, refused: () => Error): Identity {
  const colon = written.indexOf(':')
  try {
    const [first, second] = [written.slice(0, colon < 0 ? undefined : colon), written.slice(colon + 1)]
    const named = decodeURIComponent(first)
    return colon < 0
      ? { ...NOBODY, token: named }
      : { ...NOBODY, user: named, password: decodeURIComponent(second) }
  } catch {
    throw refused()
  }
}

/** Credentials as Postgres has them: a user, and its password or none. */
function userIn(written: string, refused: () => Error): Identity {
  const { user, token, ...identity } = identityIn(written, refused)
  return { ...identity, token: undefined, user: user ?? token }
}

/** @throws {FleetError} `FLEET_ARGUMENT` for servers that name two users. */
function sameAs(one: Identity, other: Identity): Identity {
  const isSame =
    one === NOBODY || (['user', 'password', 'token'] as const).every((part) => one[part] === other[part])
  if (!isSame) throw wrong('connect(): the address', 'one user for all servers', 'several')
  return other
}

/** An address without credentials, for whoever reads that it is wrong. */
const shown = (address: unknown): unknown =>
  typeof address === 'string' && /@|password/i.test(address)
    ? `${address.slice(0, address.indexOf(':'))}:…`
    : address

/**
 * The options of a connection, with the credentials of its address.
 * @throws {FleetError} `FLEET_ARGUMENT` for options that name another user.
 */
export function identified<
  Options extends Identity & { readonly nkey: unknown; readonly credentials: unknown },
>(options: Options, { user, password, token }: Identity): Options {
  if (user === undefined && token === undefined) return options
  const { nkey, credentials } = options
  const differs =
    nkey !== undefined ||
    credentials !== undefined ||
    (options.user ?? user) !== user ||
    (options.password ?? password) !== password ||
    (options.token ?? token) !== token
  if (differs) throw wrong('connect(): the address', 'without credentials where options have others', 'both')
  return { ...options, user, password, token }
}

/** Where a connection leads: of two that lead to the same jobs it is the same. */
export function whereOf(address: string, options: Partial<ConnectOptions> = {}): string {
  const { scheme, servers, ...named } = addressOf(address)
  if (scheme === 'memory') return `memory:${servers[0]}`
  if (scheme === 'sqlite') return `sqlite:${resolve(servers[0])}`
  const { schema = 'corespun', user = named.user, token = named.token, credentials, nkey } = options
  return JSON.stringify([[...servers].sort(), schema, user, token, credentials, nkey])
}
