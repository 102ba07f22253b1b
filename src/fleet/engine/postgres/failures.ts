/**
 * What Postgres and the way to it refuse, as codes of a fleet, with what its operator can do about it.
 *
 * No password is in what the client reports, but for an address that it cannot read: that one is not quoted.
 */
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'

const codeOf = (error: unknown): string => {
  const { code } = Object(error) as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Of a server that may only be read. */
const READ_ONLY = '25006'

/** Codes of Node for an address where nobody listens, and of a server that is full. */
const AWAY: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // its socket
  'EPIPE',
  '53300', // too many connections
])

/** pg has no codes for a server that accepts a connection and then is silent, or ends it. */
const SILENT = /^(timeout|Connection terminated|Client has encountered a connection error)/

/** A code of the server has five letters and digits, one digit at least; others are of the connection. */
const isOfServer = (code: string): boolean => /^(?=.*\d)[\dA-Z]{5}$/.test(code)
/** The server starts, ends a connection, or may only be read until it is promoted, as behind a failover. */
const ENDS = /^(08...|57P0[1-5]|25006)$/

/** Whether the connection is of no use any more. */
export const isLost = (error: unknown): boolean => !isOfServer(codeOf(error)) || ENDS.test(codeOf(error))

/** Whether nothing of it was done, and a new connection may do it. */
export const isUndone = (error: unknown): boolean => codeOf(error) === READ_ONLY

/** For a server that has not refused anything yet. */
export const readOnlyError = (): Error =>
  Object.assign(new Error('it may only be read, as a standby'), { code: READ_ONLY })

/** Whether a server that cannot be reached may be so later. */
const isAway = (error: unknown): boolean =>
  [codeOf(error), nested(error)].some((code) => AWAY.has(code) || ENDS.test(code)) ||
  SILENT.test(reasonOf(error))

/** Of an error with several, as for a name with several addresses. */
const nested = (error: unknown): string => {
  const { errors } = Object(error) as { readonly errors?: readonly unknown[] }
  return codeOf(errors?.[0])
}

/** Why a connection was not made. */
export function connectError(server: string, cause: unknown): FleetError {
  const code = codeOf(cause)
  const reason = reasonOf(cause)
  if (code.startsWith('28'))
    return new FleetError(
      'FLEET_DENIED',
      {
        operation: `connecting to ${server}`,
        reason,
        remedy: 'check user and password of the address, and pg_hba.conf of the server',
      },
      { cause },
    )
  const remedy =
    code === '3D000'
      ? 'create the database, or name another one'
      : code === READ_ONLY
        ? 'name the server that may be written, or all of them: postgres://a,b/database'
        : /SSL|certificate/i.test(reason)
          ? 'check sslmode of the address, and the certificate of the server'
          : 'check address, credentials and server'
  return new FleetError(
    'FLEET_CONNECT',
    { servers: server, reason, remedy, isAway: isAway(cause) },
    { cause },
  )
}

/** Why an operation had no connection for so long: it may be repeated, unless its user is refused. */
export function unreachedError(server: string, cause: unknown, timeoutMs: number): FleetError {
  const error = connectError(server, cause)
  if (error.code === 'FLEET_DENIED') return error
  return new FleetError('FLEET_TIMEOUT', { operation: `connecting to ${server}`, timeoutMs }, { cause })
}

/** For what is asked behind `close()`. */
export const closedError = (): FleetError => new FleetError('FLEET_CLOSED', { reason: 'close() was called' })

/** What an operation has failed with. */
export function failureOf(cause: unknown, operation: string, timeoutMs: number): FleetError {
  if (cause instanceof FleetError) return cause
  const code = codeOf(cause)
  if (isLost(cause) || code === '55P03')
    return new FleetError('FLEET_TIMEOUT', { operation, timeoutMs }, { cause })
  const reason = reasonOf(cause)
  if (code === '42501')
    return new FleetError(
      'FLEET_DENIED',
      { operation, reason, remedy: 'grant what docs/guide/engines.md names, or connect as another user' },
      { cause },
    )
  return new FleetError('FLEET_ENGINE', { operation, reason }, { cause })
}
