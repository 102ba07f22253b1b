/**
 * The opening handshake (RFC 6455, 4.2): what a request must have to become a WebSocket, and what is agreed.
 *
 * Both cores pass requests through this file, so both refuse the same ones. The native core shows those of
 * HTTP/2 (RFC 8441) as GET with `upgrade` and `connection`; they have no key.
 */
import { type Exchange, TYPE_LAST } from '../message/core-interface.ts'
import { headerLines } from '../fetch/headers.ts'
import type { HeadersInit } from '../message/standard.ts'
import { wrong } from '../message/limits.ts'
import { type Parsed, TOKEN } from './handlers.ts'
import type { AllowedOrigins, UpgradeOptions } from './socket.ts'
import type { Grant } from '../message/wire.ts'

/** 16 bytes in base64; the last of 22 characters has two significant bits. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/
/** Headers of the response that the handshake itself writes. */
const OWN = /^(connection|upgrade|sec-websocket-|content-length|transfer-encoding|date$)/

/** What 426 has to name (RFC 9110, 15.5.22). */
const UPGRADE = 'upgrade: websocket\r\n'

/** The handshake is refused: status, why, and complete header lines. */
export interface Refused {
  readonly status: number
  readonly why: string
  readonly lines: string
}

/**
 * @param host The host that the client names, for `origins: 'same'`.
 * @throws {HttpError} `HTTP_ARGUMENT` for headers or a subprotocol that the response cannot have.
 */
export function handshake(
  exchange: Exchange,
  host: string,
  { protocols, origins, terms }: Parsed,
  options: UpgradeOptions,
): Grant | Refused {
  const key = exchange.hasNoKey === true ? undefined : exchange.header('sec-websocket-key')
  const why = faultOf(exchange, key)
  if (why !== undefined) return why
  const origin = exchange.header('origin')
  if (origin !== undefined && !isAllowed(origin, host, origins))
    return refused(403, `pages of ${origin} may not connect; see the option origins`)
  const offered = listOf(exchange.header('sec-websocket-protocol'))
  if (offered?.some((name) => !TOKEN.test(name))) return refused(400, 'sec-websocket-protocol is malformed')
  const { protocol = protocols.find((name) => offered?.includes(name)) ?? '', headers } = options
  if (protocol !== '' && !offered?.includes(protocol))
    throw wrong('upgrade(): protocol', 'one of those that the client offers', protocol)
  const offers = exchange.header('sec-websocket-extensions')
  const deflates = offersDeflate(offers)
  if (deflates === undefined) return refused(400, 'sec-websocket-extensions is malformed')
  const { compressedBytesMin } = terms
  const lines = headers === undefined ? '' : linesOf(headers)
  return { key, protocol, deflates: deflates && compressedBytesMin !== undefined, lines, terms }
}

/** The host of a URL or of an origin, as `origins: 'same'` compares it. */
function isAllowed(origin: string, host: string, origins: AllowedOrigins): boolean {
  if (origins === 'any') return true
  if (typeof origins === 'function') return origins(origin) === true
  if (origins !== 'same') return origins.includes(origin)
  return URL.canParse(origin) && new URL(origin).host === host
}

function faultOf(exchange: Exchange, key: string | undefined): Refused | undefined {
  if (exchange.header('upgrade')?.toLowerCase() !== 'websocket')
    return refused(426, 'this is a WebSocket', UPGRADE)
  if (exchange.header('sec-websocket-version') !== '13')
    return refused(426, 'sec-websocket-version must be 13', `${UPGRADE}sec-websocket-version: 13\r\n`)
  const connection = listOf(exchange.header('connection'))?.map((option) => option.toLowerCase())
  if (exchange.method !== 'GET' || connection?.includes('upgrade') !== true || connection.includes('close'))
    return refused(400, 'a WebSocket begins with GET and connection: upgrade')
  if (exchange.hasNoKey !== true && (key === undefined || !KEY.test(key)))
    return refused(400, 'sec-websocket-key must be 16 bytes in base64')
  if (exchange.bodyBytes !== 0) return refused(400, 'a request for a WebSocket has no body')
  return undefined
}

function refused(status: number, why: string, lines = ''): Refused {
  return { status, why, lines }
}

function listOf(header: string | undefined): string[] | undefined {
  return header?.split(',').map((part) => part.trim())
}

/**
 * Whether an offer of `permessage-deflate` can be accepted without context takeover on both sides
 * (RFC 7692, 7.1); undefined: the header is malformed. A smaller window for the server is not available, and
 * a smaller one of the client needs nothing here.
 */
function offersDeflate(header: string | undefined): boolean | undefined {
  if (header === undefined) return false
  let found = false
  for (const offer of header.split(',')) {
    const [name, ...parameters] = offer.split(';').map((part) => part.trim())
    if (!TOKEN.test(name) || !parameters.every((one) => PARAMETER.test(one))) return undefined
    found ||= name === 'permessage-deflate' && parameters.every(isAcceptable) && areUnlike(parameters)
  }
  return found
}

const PARAMETER = /^[!#$%&'*+\-.^_`|~\w]+(\s*=\s*([!#$%&'*+\-.^_`|~\w]+|"[!#$%&'*+\-.^_`|~\w]+"))?$/
const ACCEPTABLE = [
  /^(server|client)_no_context_takeover$/,
  /^client_max_window_bits(\s*=\s*"?([89]|1[0-5])"?)?$/,
  /^server_max_window_bits\s*=\s*"?15"?$/,
]

function isAcceptable(parameter: string): boolean {
  return ACCEPTABLE.some((form) => form.test(parameter))
}

/** Whether no parameter is repeated. */
function areUnlike(parameters: readonly string[]): boolean {
  const names = parameters.map((one) => one.split('=')[0].trim())
  return new Set(names).size === names.length
}

function linesOf(headers: HeadersInit): string {
  const { type, lines, length } = headerLines(headers)
  const own = lines.split('\r\n').find((line) => OWN.test(line))
  if (own !== undefined || length !== undefined || (type & ~TYPE_LAST) !== 0)
    throw wrong('upgrade(): headers', 'headers that the handshake does not write itself', own ?? 'content-*')
  return lines
}
