/**
 * The limits of a server: every one has a default, and none can be turned off by leaving it out.
 *
 * What a core does at each limit stands at the field and in docs/design/http-app.md; nothing here is a hint.
 */
import { TIMER_MS_MAX, integer, optionsOf, refuser } from '../base/index.ts'
import type { CoreLimits } from './core/core.ts'
import { HttpError } from './errors.ts'
import { HEADER_BYTES_MAX } from './core/native/layout.ts'

/** What `serve({limits})` takes; what is left out has the default named here. */
export interface HttpLimits {
  /** Most bytes of a request's line and headers, 256 to 65,535; 431 beyond. Default 16,384. */
  readonly headerBytesMax?: number
  /** Most headers of a request, and trailers of a chunked body, 1 to 512; 431 beyond. Default 100. */
  readonly headersMax?: number
  /** Most bytes of a request's target, 16 to 65,535; 414 beyond. Default 8192. */
  readonly targetBytesMax?: number
  /** Most bytes of a request's body; 413 beyond. Default 16 MiB. */
  readonly bodyBytesMax?: number
  /** Longest time in ms that a connection may stand between two requests; closed then. Default 65,000. */
  readonly idleMs?: number
  /** Longest time in ms from the first byte of a head to its last; 408 beyond. Default 10,000. */
  readonly headersMs?: number
  /** Longest time in ms for which a body that is wanted may stand still; 408 beyond. Default 30,000. */
  readonly bodyMs?: number
  /**
   * Longest time in ms for which what a client still sends is read and dropped behind the last response of
   * its connection, such as the 401 or 413 that refuses its upload: closing sooner would reset the
   * connection, which may destroy the response. It ends sooner for a client that sends less than 500 bytes a
   * second. At most a quarter of `connectionsMax` are read so at once. The native core's. Default 30,000.
   */
  readonly lingerMs?: number
  /** Most connections at once; others are closed as they come. Default 20,000. */
  readonly connectionsMax?: number
  /** Requests after which a connection is closed in good order. Default 1,000,000. */
  readonly requestsPerConnectionMax?: number
  /** Most requests of one connection that were read and not answered. Default 64. */
  readonly pipelineMax?: number
  /** Most bytes of answers that a connection holds for a slow reader before writers wait. Default 256 KiB. */
  readonly outBytesMax?: number
  /**
   * Most bytes of whole bodies of more than 64 KiB that wait for slow readers, on all connections of a worker
   * together; a response that would add more is replaced by 503 with `retry-after: 1`. Equal bodies are in
   * memory once and count once, those of constants not at all, and one body alone always has room. The native
   * core's. Default 256 MiB.
   */
  readonly outBytesTotalMax?: number
}

interface Range {
  readonly least: number
  readonly most: number
  readonly default: number
}

const MEBI = 1024 * 1024

/**
 * Each limit's default and what it may be. Those of heads are what the native core can do: offsets in a head
 * have sixteen bits, and its fields lie on the stack while they are parsed. A core enforces what it is given.
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
  outBytesMax: { least: 1024, most: 2 ** 30, default: 256 * 1024 },
  outBytesTotalMax: { least: 0, most: 2 ** 40, default: 256 * MEBI },
}

const KINDS = Object.fromEntries(
  Object.entries(LIMIT_RANGES).map(([name, { least, most, default: otherwise }]) => [
    name,
    integer(least, most, otherwise),
  ]),
)

/** Check `given` and fill in what is absent. @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseLimits(given: unknown, call: string): CoreLimits {
  return optionsOf(given, KINDS, wrong, call, 'limits') as unknown as CoreLimits
}

/** The error for a setting that cannot be what it is. */
export const wrong = refuser((facts) => new HttpError('HTTP_ARGUMENT', facts))
