/**
 * Why no server has accepted a connection, and what its owner can do about it.
 *
 * Reasons are those of the client and of Node's TLS. A server that expects a certificate of the client closes
 * without a reason, and the client only sees that its time is over.
 */
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'
import type { NatsTls } from '../../secrets.ts'

const REFUSED: ReadonlySet<unknown> = new Set(['AuthorizationError', 'UserAuthenticationExpiredError'])
/** Codes of Node for a certificate whose authority is not trusted. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])

/** Codes of Node for an address where nobody listens, and for a name without an address. */
const AWAY: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** The error for what `connect` of the client has thrown. */
export function refusal(servers: string, tls: NatsTls | undefined, cause: unknown): FleetError {
  const { name, code, cause: inner } = Object(cause) as Partial<Record<'name' | 'code' | 'cause', unknown>>
  const reason = reasonOf(cause)
  if (REFUSED.has(name))
    return new FleetError('FLEET_DENIED', { operation: `connecting to ${servers}`, reason }, { cause })
  const remedy = remedyFor(name, code, tls !== undefined && tls.cert === undefined)
  // The client has an error of its own for the first of them.
  const isAway = AWAY.has(code) || AWAY.has((Object(inner) as { readonly code?: unknown }).code)
  return new FleetError('FLEET_CONNECT', { servers, reason, remedy, isAway }, { cause })
}

function remedyFor(name: unknown, code: unknown, isUncertified: boolean): string {
  if (UNTRUSTED.has(code)) return 'pass the authority of its certificate as tls.ca'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'use an address that its certificate has'
  if (name === 'TimeoutError' && isUncertified)
    return 'check address and server; one that verifies its clients needs tls.cert and tls.key'
  return 'check address, credentials and server'
}
