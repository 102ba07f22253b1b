/**
 * What the node core refuses beyond what node:http refuses by itself, so that both cores refuse the same.
 *
 * node:http parses; these look at a head that it has accepted. Where it accepts or refuses before anybody is
 * asked, the cores differ, and docs/design/http-app.md lists where.
 */
import type { IncomingMessage } from 'node:http'
import type { CoreLimits } from './core.ts'

const AUTHORITY = /^(?:\[[0-9a-f.]*:[0-9a-f.:]*\]|[\w\-.~%!$&'()*+,;=]+)(?::(\d{0,5}))?$/i
const PORT_MAX = 65_535
/** Characters of a URI, and in a query those as well that the URL standard leaves there. */
const TARGET = /^[\w\-.~:/[\]@!$&'()*+,;=%]*(?:\?[\w\-.~:/?[\]@!$&'()*+,;=%\\^`{|}]*)?$/

/** Why a request is not carried out: the status of its answer; 0 when it is. */
export function refusalOf(request: IncomingMessage, limits: CoreLimits): number {
  const { rawHeaders, headers, httpVersionMajor: major, httpVersionMinor: minor } = request
  const method = request.method!
  const target = request.url!
  if (major !== 1 || minor > 1) return 505
  if (target.length > limits.targetBytesMax) return 414
  if (rawHeaders.length > 2 * limits.headersMax) return 431
  if (method === 'CONNECT' || method === 'TRACE') return 501
  const { host } = headers
  if (host === undefined ? minor === 1 : !isAuthority(host)) return 400
  if (!isTarget(target, method)) return 400
  if (/^https:/i.test(target)) return 421 // its scheme asks for TLS (RFC 9110, 7.4)
  return framingRefusal(request, limits)
}

/**
 * Whether the client wants its connection closed. For HTTP/1.0 node:http lets `keep-alive` go before `close`.
 */
export function asksToClose({ headers: { connection } }: IncomingMessage): boolean {
  if (connection === undefined) return false
  return connection.split(',').some((option) => option.trim().toLowerCase() === 'close')
}

/** The form of a target fits its method (RFC 9112, 3.2). */
function isTarget(target: string, method: string): boolean {
  if (!TARGET.test(target)) return false
  if (target.startsWith('/') || (target === '*' && method === 'OPTIONS')) return true
  const authority = /^https?:\/\/([^/?]*)/i.exec(target)?.[1]
  return authority !== undefined && isAuthority(authority)
}

/** A host and, if need be, a port that there can be. */
function isAuthority(text: string): boolean {
  const found = AUTHORITY.exec(text)
  return found !== null && Number(found[1] ?? 0) <= PORT_MAX
}

function framingRefusal({ headers, httpVersionMinor: minor }: IncomingMessage, limits: CoreLimits): number {
  const { 'content-length': length, 'transfer-encoding': codings, expect } = headers
  if (expect?.split(',').some((member) => member.trim().toLowerCase() !== '100-continue')) return 417
  if (codings !== undefined) {
    if (length !== undefined || minor === 0) return 400
    const names = codings.split(',').map((name) => name.trim().toLowerCase())
    if (
      names.some((name) => name === '' || name === 'identity') ||
      names.indexOf('chunked') !== names.length - 1
    )
      return 400
    return names.length > 1 ? 501 : 0
  }
  if (length === undefined) return 0
  if (!/^\d+$/.test(length)) return 400
  return Number(length) > limits.bodyBytesMax ? 413 : 0
}

/** The status that answers what node:http's parser did not accept. */
export function parserRefusal(error: { code?: string; rawPacket?: Uint8Array }): number {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 431
    case 'HPE_INVALID_VERSION':
      return versionRefusal(error.rawPacket)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 408
    default:
      return 400
  }
}

/** A version that is well written and not ours is 505; anything else in its place is 400 (RFC 9112, 2.3). */
function versionRefusal(packet: Uint8Array | undefined): number {
  const line = Buffer.from(packet ?? [])
    .toString('latin1')
    .split('\n', 1)[0]!
  return / HTTP\/(?!1\.[01])\d\.\d\r$/.test(line) ? 505 : 400
}

/** A whole answer of a refusal, for a socket that no response of node:http owns. */
export function refusalText(status: number, reason: string): string {
  const head = `HTTP/1.1 ${status} ${reason}\r\ndate: ${new Date().toUTCString()}\r\n`
  return `${head}connection: close\r\ncontent-length: 0\r\n\r\n`
}
