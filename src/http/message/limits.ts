/**
 * The limits of a server: their defaults and their checks.
 *
 * Every limit has a default; omitting one does not turn it off.
 */
import { TIMER_MS_MAX, integer, optionsOf, refuser } from '../../base/index.ts'
import type { CoreLimits } from './core.ts'
import { HttpError } from '../errors.ts'
import { HEADER_BYTES_MAX } from './layout.ts'

/** Limits of a server, the option `limits` of {@link serve}. */
export interface HttpLimits {
  /** Most bytes of a request line and its headers, 256 to 65,535; beyond it 431. Default 16,384. */
  readonly headerBytesMax?: number
  /** Most headers of a request, and trailers of a chunked body, 1 to 512; beyond it 431. Default 100. */
  readonly headersMax?: number
  /** Most bytes of a request target, 16 to 65,535; beyond it 414. Default 8192. */
  readonly targetBytesMax?: number
  /** Most bytes of a request body; beyond it 413. Default 16 MiB. */
  readonly bodyBytesMax?: number
  /** Longest idle time between two requests of a connection, in ms; then it is closed. Default 65,000. */
  readonly idleMs?: number
  /** Longest time between the first and last byte of a head, in ms; beyond it 408. Default 10,000. */
  readonly headersMs?: number
  /** Longest time without a byte of a body that the app reads, in ms; beyond it 408. Default 30,000. */
  readonly bodyMs?: number
  /**
   * Longest time, in ms, for which the server reads and drops what a client still sends after the last
   * response of its connection, such as the 401 or 413 that refuses its upload. Closing the connection sooner
   * resets it, and the client may lose the response. The time ends sooner for a client that sends less than
   * 500 bytes per second. At most a quarter of `connectionsMax` are read in this way at once. Native core
   * only. Default 30,000.
   */
  readonly lingerMs?: number
  /** Most connections at once; further ones are closed when they are accepted. Default 20,000. */
  readonly connectionsMax?: number
  /** Requests after which a connection is closed gracefully. Default 1,000,000. */
  readonly requestsPerConnectionMax?: number
  /** Most requests of one connection that are read before their responses are sent. Default 64. */
  readonly pipelineMax?: number
  /** Most open requests of one connection of HTTP/2. Default 128. */
  readonly streamsMax?: number
  /**
   * Most streams of one connection of HTTP/2 that its client may reset within two seconds before their
   * responses have begun, 1 to 65,536; each response that has begun allows one more. Beyond it, new streams
   * are refused, and the connection ends when the open ones have, or after five seconds. Native core only.
   * Default 256.
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
  /**
   * Most files of {@link files} that a worker keeps open for further requests, 1 to 65,536. One that no
   * request has used for ten seconds is closed. Native core only. Default 256.
   */
  readonly openFilesMax?: number
  /**
   * Longest time for the handshake of TLS, from the connection's beginning, in ms; then it is closed. At most
   * a quarter of `connectionsMax` may be in a handshake at once; further connections are closed when they are
   * accepted. Default 10,000.
   */
  readonly handshakeMs?: number
}

interface Range {
  readonly least: number
  readonly most: number
  readonly default: number
}

const MEBI = 1024 * 1024

/**
 * The range and default of each limit. The native core sets the maxima of heads: offsets in a head have 16
 * bits, and its fields are on the stack while they are parsed.
 */
export const LIMIT_RANGES: { readonly [Name in keyof CoreLimits]: Range } = {
  headerBytesMax: { least: 256, most: HEADER_BYTES_MAX, default: 16_384 },
  headersMax: { least: 1, most: 512, default: 100 },
  targetBytesMax: { least: 16, most: HEADER_BYTES_MAX, default: 8192 },
  bodyBytesMax: { least: 0, most: 2 ** 40, default: 16 * MEBI },
  idleMs: { least: 1, most: TIMER_MS_MAX, default: 65_000 },
  headersMs: { least: 1, most: TIMER_MS_MAX, default: 10_000 },
  bodyMs: { least: 1, most: TIMER_MS_MAX, default: 30_000 },
  lingerMs: { least: 1, most: TIMER_MS_MAX, default: 30_000 },
  connectionsMax: { least: 1, most: 1_000_000, default: 20_000 },
  requestsPerConnectionMax: { least: 1, most: 2 ** 31 - 1, default: 1_000_000 },
  pipelineMax: { least: 1, most: 10_000, default: 64 },
  streamsMax: { least: 1, most: 10_000, default: 128 },
  resetsMax: { least: 1, most: 65_536, default: 256 },
  outBytesMax: { least: 1024, most: 2 ** 30, default: 256 * 1024 },
  outBytesTotalMax: { least: 0, most: 2 ** 40, default: 256 * MEBI },
  openFilesMax: { least: 1, most: 65_536, default: 256 },
  handshakeMs: { least: 1, most: TIMER_MS_MAX, default: 10_000 },
}

const KINDS = Object.fromEntries(
  Object.entries(LIMIT_RANGES).map(([name, { least, most, default: otherwise }]) => [
    name,
    integer(least, most, otherwise),
  ]),
)

export function parseLimits(given: unknown, call: string): CoreLimits {
  return optionsOf(given, KINDS, wrong, call, 'limits') as unknown as CoreLimits
}

export const wrong = refuser((facts) => new HttpError('HTTP_ARGUMENT', facts))
