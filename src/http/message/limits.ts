/**
 * The limits of a server: their defaults and their checks.
 *
 * Every limit has a default; omitting one does not turn it off.
 */
import { TIMER_MS_MAX, integer, optionsOf, refuser } from '../../base/index.ts'
import { HttpError } from '../errors.ts'
import { HEADER_BYTES_MAX } from './layout.ts'

/** Limits of a server, the option `limits` of {@link serve}. */
export interface HttpLimits {
  /**
   * Most bytes of a request line and its headers, 256 to 65,535; beyond it 431. Half of it bounds the request
   * target; beyond it 414. A 128th of it, but at least 100, bounds the number of headers, and of the trailers
   * of a chunked body. Default 16,384.
   */
  readonly headerBytesMax?: number
  /** Most bytes of a request body; beyond it 413. Default 16 MiB. */
  readonly bodyBytesMax?: number
  /** Longest idle time between two requests of a connection, in ms; then it is closed. Default 65,000. */
  readonly idleMs?: number
  /**
   * Longest time between the first and last byte of a head, in ms; beyond it 408. Also the longest time for
   * the handshake of TLS, from the connection's beginning; beyond it the connection is closed. At most a
   * quarter of `connectionsMax` may be in a handshake at once. Default 10,000.
   */
  readonly headersMs?: number
  /**
   * Longest time without a byte of a body that the app reads, in ms; beyond it 408. Also the longest time for
   * which the server reads and drops what a client still sends after the last response of its connection,
   * such as the 401 or 413 that refuses its upload: closing it sooner resets it, and the client may lose the
   * response. That time ends sooner for a client that sends less than 500 bytes per second, and at most a
   * quarter of `connectionsMax` are read in this way at once. Default 30,000.
   */
  readonly bodyMs?: number
  /** Most connections at once; further ones are closed when they are accepted. Default 20,000. */
  readonly connectionsMax?: number
  /**
   * Most open requests of one connection: streams of HTTP/2, and pipelined requests of HTTP/1.1, of which
   * there are at most 64. Default 128.
   */
  readonly streamsMax?: number
  /**
   * Most streams of a connection that its client resets within two seconds before their responses have begun;
   * each response that has begun allows one more. Beyond that, new streams are refused, and the connection
   * ends when the open ones have, or after five seconds. Default 256.
   */
  readonly resetsMax?: number
  /** Most unsent response bytes of a connection before streams and pipelines wait. Default 256 KiB. */
  readonly outBytesMax?: number
  /**
   * Most bytes of whole bodies with more than 64 KiB unsent, on all connections of all workers together; a
   * response that would exceed it is replaced by 503 with `retry-after: 1`. Equal bodies of a worker are
   * stored and counted once, bodies of constants are not counted, and a single body always fits. Native core
   * only. Default 256 MiB.
   */
  readonly outBytesTotalMax?: number
}

interface Range {
  readonly least: number
  readonly most: number
  readonly default: number
}

const MEBI = 1024 * 1024

/** The range and default of each limit. Offsets in a head of the native core have 16 bits. */
export const LIMIT_RANGES: { readonly [Name in keyof HttpLimits]-?: Range } = {
  headerBytesMax: { least: 256, most: HEADER_BYTES_MAX, default: 16_384 },
  bodyBytesMax: { least: 0, most: 2 ** 40, default: 16 * MEBI },
  idleMs: { least: 1, most: TIMER_MS_MAX, default: 65_000 },
  headersMs: { least: 1, most: TIMER_MS_MAX, default: 10_000 },
  bodyMs: { least: 1, most: TIMER_MS_MAX, default: 30_000 },
  connectionsMax: { least: 1, most: 1_000_000, default: 20_000 },
  streamsMax: { least: 1, most: 10_000, default: 128 },
  resetsMax: { least: 1, most: 65_536, default: 256 },
  outBytesMax: { least: 1024, most: 2 ** 30, default: 256 * 1024 },
  outBytesTotalMax: { least: 0, most: 2 ** 40, default: 256 * MEBI },
}

const KINDS = Object.fromEntries(
  Object.entries(LIMIT_RANGES).map(([name, { least, most, default: otherwise }]) => [
    name,
    integer(least, most, otherwise),
  ]),
)

/** Headers that every server accepts, and the bytes of a head that allow one more. */
const HEADERS_LEAST = 100
const BYTES_PER_HEADER = 128

/** The limits that a core enforces, complete and checked. */
export interface CoreLimits extends Required<HttpLimits> {
  readonly headersMax: number
  readonly targetBytesMax: number
}

/** The limits of a core: those that were passed, and those that follow from them. */
export function parseLimits(given: unknown, call: string): CoreLimits {
  const limits = optionsOf(given, KINDS, wrong, call, 'limits') as unknown as Required<HttpLimits>
  return {
    ...limits,
    headersMax: Math.max(HEADERS_LEAST, Math.ceil(limits.headerBytesMax / BYTES_PER_HEADER)),
    targetBytesMax: Math.floor(limits.headerBytesMax / 2),
  }
}

export const wrong = refuser((facts) => new HttpError('HTTP_ARGUMENT', facts))
