/**
 * How a command connects to a fleet: the flags that `corespun host` and `corespun fleet` share.
 *
 * Files are read by `connect`, which names what is wrong with one.
 */
import { existsSync } from 'node:fs'
import type { ParseArgsConfig } from 'node:util'
import type { ConnectOptions } from '../../fleet/index.ts'
import { usage } from '../arguments.ts'

export const connectionFlags = {
  sqlite: { type: 'string' },
  postgres: { type: 'string' },
  schema: { type: 'string' },
  nats: { type: 'string' },
  creds: { type: 'string' },
  nkey: { type: 'string' },
  inbox: { type: 'string' },
  ca: { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
} as const satisfies ParseArgsConfig['options']

/** What was passed for {@link connectionFlags}. */
export type ConnectionWords = { readonly [Name in keyof typeof connectionFlags]?: string | undefined }

/** Servers, and how to connect to them. */
export interface Connection {
  /** As `connect` takes them. */
  readonly servers: string
  readonly options: Pick<ConnectOptions, 'tls' | 'credentials' | 'nkey' | 'inbox' | 'schema'>
}

/** What may be printed of an address: of servers nothing before an `@`, and nothing else of such an item. */
export const withoutCredentials = (address: string): string =>
  address.startsWith('sqlite:') ? address : address.replace(/^(\w+:(?:\/\/)?)?.*@/s, '$1')

/**
 * @param values Those of other flags are passed over.
 * @param servers Those of the environment, for when no word names any.
 * @throws {CliError} `CLI_USAGE`.
 */
export function connectionOf(values: ConnectionWords, servers: string | undefined): Connection {
  const isOwn = ([flag]: readonly [string, unknown]): boolean => Object.hasOwn(connectionFlags, flag)
  const words: ConnectionWords = Object.fromEntries(Object.entries(values).filter(isOwn))
  const { sqlite, ...others } = words
  // As an address, too: a file of the name `sqlite:work.db` would be another one.
  const file = sqlite?.replace(/^sqlite:/, '')
  if (file !== undefined) {
    if (file === '') throw usage('--sqlite needs a value')
    const [other] = Object.keys(others).filter((flag) => others[flag as keyof typeof others] !== undefined)
    if (other !== undefined) throw usage(`--sqlite and --${other} exclude each other`)
    return Object.freeze({ servers: `sqlite:${file}`, options: {} })
  }
  if (words.postgres !== undefined) return postgresOf(words.postgres, words)
  if (words.schema !== undefined)
    throw usage('--schema is one of Postgres: --postgres postgres://host/database')
  const address = words.nats ?? servers
  if (address === undefined)
    throw usage(
      'name a file, --sqlite work.db, a database, --postgres postgres://host/database, or servers: ' +
        '--nats nats://127.0.0.1:4222, or CORESPUN_NATS',
    )
  if (!/^(nats|tls):\/\//.test(address))
    throw usage(`--nats takes nats://… or tls://…, not "${withoutCredentials(address)}"`)
  for (const [flag, value] of Object.entries(words)) if (value === '') throw usage(`--${flag} needs a value`)
  const { creds: credentials, nkey, inbox, ca, cert, key } = words
  if (credentials !== undefined && nkey !== undefined) throw usage('--creds and --nkey exclude each other')
  const options = { credentials, nkey, inbox, tls: tlsOf({ ca, cert, key }) }
  return Object.freeze({ servers: address, options })
}

/** @throws {CliError} `CLI_USAGE`. */
function postgresOf(servers: string, words: ConnectionWords): Connection {
  const { schema, ca, cert, key } = words
  for (const flag of ['nats', 'creds', 'nkey', 'inbox'] as const)
    if (words[flag] !== undefined) throw usage(`--postgres and --${flag} exclude each other`)
  if (!/^postgres(ql)?:/.test(servers))
    throw usage(`--postgres takes postgres://…, not "${withoutCredentials(servers)}"`)
  if (schema === '') throw usage('--schema needs a value')
  const tls = tlsOf({ ca, cert, key })
  return Object.freeze({ servers, options: { tls, ...(schema !== undefined && { schema }) } })
}

function tlsOf({ ca, cert, key }: Pick<ConnectionWords, 'ca' | 'cert' | 'key'>): ConnectOptions['tls'] {
  if (cert !== undefined && key === undefined) throw usage('--cert needs --key, the file of its private key')
  if (key !== undefined && cert === undefined) throw usage('--key needs --cert, the file of its certificate')
  return ca !== undefined || cert !== undefined ? { ca, cert, key } : undefined
}

/**
 * Who looks must not create the file.
 * @param flag What is written before its path.
 * @throws {CliError} `CLI_USAGE` for a file that does not exist.
 */
export function checkFile({ servers }: Connection, flag: string): void {
  const file = /^sqlite:(.+)/s.exec(servers)?.[1]
  if (file !== undefined && !existsSync(file))
    throw usage(`${flag}${file}: no such file; the first submit or corespun host creates it`)
}
