/**
 * The PROXY protocol for the adapter: what crates/http/src/machine/proxy.rs is for the native core.
 *
 * A header comes before the first request, so it is read before node:http gets the socket. What was read
 * behind it is put back.
 */
import { isIP, type Socket } from 'node:net'

const LINE_BYTES_MAX = 107
const LINE_BEGIN = Buffer.from('PROXY ')
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const FIXED_BYTES = 16
const REFUSAL =
  'HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain;charset=UTF-8\r\nconnection: close\r\n\r\n' +
  'the connection must begin with a valid PROXY protocol header\n'

/** A header and the client that it states; '' if it states none. */
interface ProxyHeader {
  readonly bytes: number
  readonly client: string
}

/** `undefined`: more bytes are needed; 'refused': this is not a header. */
type Parsed = ProxyHeader | 'refused' | undefined

/**
 * Reads the header of a connection, and calls `ready` with its client (`undefined`: the peer). A connection
 * without one is refused and closed after a call of `onRefused`, as is one that takes longer than
 * `timeoutMs`.
 */
export function readProxyHeader(
  socket: Socket,
  { timeoutMs, bytesMax }: { readonly timeoutMs: number; readonly bytesMax: number },
  ready: (client: string | undefined) => void,
  onRefused: () => void,
): void {
  let seen = Buffer.alloc(0)
  const late = setTimeout(() => socket.destroy(), timeoutMs)
  const stop = (): void => {
    clearTimeout(late)
    socket.off('readable', onReadable).off('close', stop).off('error', onError)
  }
  const onError = (): void => {} // 'close' follows
  const onReadable = (): void => {
    for (let piece: Buffer | null; (piece = socket.read() as Buffer | null) !== null;)
      seen = Buffer.concat([seen, piece])
    const parsed = parseProxyHeader(seen, bytesMax)
    if (parsed === undefined && !socket.readableEnded) return
    stop()
    if (parsed === undefined) socket.destroy()
    else if (parsed === 'refused') {
      onRefused()
      socket.on('error', onError).end(REFUSAL).destroySoon()
    } else {
      if (seen.length > parsed.bytes) socket.unshift(seen.subarray(parsed.bytes))
      ready(parsed.client === '' ? undefined : parsed.client)
    }
  }
  socket.on('readable', onReadable).on('close', stop).on('error', onError)
}

/** Reads the header that `input` begins with. */
export function parseProxyHeader(input: Uint8Array, bytesMax: number): Parsed {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength)
  const isPrefix = (of: Buffer): boolean => {
    const count = Math.min(of.length, bytes.length)
    return bytes.compare(of, 0, count, 0, count) === 0
  }
  if (isPrefix(SIGNATURE)) return parseBinary(bytes, bytesMax)
  return isPrefix(LINE_BEGIN) ? parseLine(bytes) : 'refused'
}

function parseLine(bytes: Buffer): Parsed {
  const end = bytes.subarray(0, LINE_BYTES_MAX).indexOf('\r\n')
  if (end < 0) return bytes.length < LINE_BYTES_MAX ? undefined : 'refused'
  const line = bytes.toString('latin1', LINE_BEGIN.length, end)
  const found = /^TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5})$/.exec(line)
  if (/^UNKNOWN(?: |$)/.test(line)) return { bytes: end + 2, client: '' }
  if (found === null || Number(found[4]) > 65_535 || Number(found[5]) > 65_535) return 'refused'
  const version = Number(found[1])
  if (isIP(found[2]) !== version || isIP(found[3]) !== version) return 'refused'
  return { bytes: end + 2, client: found[2] }
}

function parseBinary(bytes: Buffer, bytesMax: number): Parsed {
  if (bytes.length < FIXED_BYTES) return undefined
  const [version, command, family] = [bytes[12] >> 4, bytes[12] & 15, bytes[13] >> 4]
  const length = bytes.readUInt16BE(14)
  if (version !== 2 || command > 1 || FIXED_BYTES + length > bytesMax) return 'refused'
  if (bytes.length < FIXED_BYTES + length) return undefined
  const addresses = bytes.subarray(FIXED_BYTES, FIXED_BYTES + length)
  const header = (client: string): ProxyHeader => ({ bytes: FIXED_BYTES + length, client })
  if (command === 0 || (family !== 1 && family !== 2)) return header('')
  if (length < (family === 1 ? 12 : 36)) return 'refused'
  return header(family === 1 ? addresses.subarray(0, 4).join('.') : textOf(addresses.subarray(0, 16)))
}

/** An IPv6 address in its shortest form, as URLs have it. */
function textOf(octets: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, at) => octets.readUInt16BE(2 * at).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
