/**
 * Opens an engine in Postgres: the address as the package pg takes it, its tables, and what is refused.
 *
 * A password is only in what is passed to pg; no message has one.
 */
import type { ClientConfig } from 'pg'
import { wrong } from '../../errors.ts'
import { peer } from '../../peer.ts'
import { CLOCK, type Engine } from '../engine.ts'
import { failureOf } from './failures.ts'
import { PostgresKeeps } from './keeps.ts'
import { Link, OPERATION_MS } from './link.ts'
import { namesIn, prepareSchema } from './schema.ts'
import { serversOf } from './servers.ts'

/** How a connection is made, checked. */
export interface PostgresSettings {
  /** Host, database and parameters, as in an address behind its credentials; empty: as in the environment. */
  readonly where: string
  readonly name: string
  readonly connectMs: number
  readonly schema: string
  readonly user: string | undefined
  readonly password: string | undefined
  readonly tls: object | undefined
}

/**
 * Connect, and make the tables where they are missing.
 * @throws {FleetError} `FLEET_PEER_MISSING`, `FLEET_ARGUMENT`, `FLEET_CONNECT`, `FLEET_DENIED`,
 *   `FLEET_SCHEMA_VERSION`.
 */
export async function postgresEngine(settings: PostgresSettings): Promise<Engine> {
  const { default: pg } = await peer('pg', () => import('pg'), 'connect(): postgres://')
  const { name, connectMs, schema, tls } = settings
  const names = namesIn(schema)
  const servers = serversOf(settings.where)
  let engine: PostgresKeeps | undefined
  const open = (): Link => {
    try {
      return new Link(pg, {
        configs: servers.map((where) => ({
          ...configOf({ ...settings, where }),
          application_name: name,
          keepAlive: true,
          ...(tls !== undefined && { ssl: tls }),
        })),
        connectMs,
        clock: CLOCK,
        channel: names.channel,
        onHint: (hint) => engine?.hinted(hint),
      })
    } catch {
      // Its own error has the address, with the password.
      throw wrong('connect(): the address', 'postgres://user:password@host:port/database', 'another URL')
    }
  }
  const link = open()
  try {
    await link.check()
    await prepareSchema(link, schema, names)
  } catch (error) {
    await link.close()
    throw failureOf(error, `opening schema ${schema}`, OPERATION_MS)
  }
  engine = new PostgresKeeps(link, names)
  return engine
}

/** As an address where there is one: what it leaves out is then as in the environment. */
function configOf({ where, user, password }: PostgresSettings): ClientConfig {
  if (where === '')
    return { ...(user !== undefined && { user }), ...(password !== undefined && { password }) }
  const [name, secret] = [user, password].map((part) => part && encodeURIComponent(part))
  const credentials = name === undefined ? '' : `${name}${secret === undefined ? '' : `:${secret}`}@`
  return { connectionString: `postgres://${credentials}${where}` }
}
