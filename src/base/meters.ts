/**
 * Who counts what this thread does: nobody, until src/metrics is loaded and fills these slots.
 *
 * They are here since what counts is above what is counted. An empty slot costs its reader one comparison.
 */

/** One request, from its head to the end of its response. */
export interface RequestCount {
  /** Of the response; 0 before it has begun. */
  status: number
  /** Bytes of the response's body that were passed to the core. */
  bytes: number
  /** Called once: the response is complete, or was given up. */
  ended(isAborted: boolean): void
}

/** The counts of a server of this thread, since it listens. */
export interface ServerFigures {
  readonly connections: number
  readonly connectionsTotal: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The constant responses that its core has sent by itself. */
  readonly constants: readonly ConstantCount[]
}

/** How often a constant response was sent. */
export interface ConstantCount {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly count: number
}

export const meters: {
  /** A request begins; `route` is the pattern that fits it. */
  request: ((method: string, route: string | undefined) => RequestCount) | undefined
  /** The servers of this thread that listen. */
  readonly servers: Set<() => ServerFigures>
  /** Fibers of this thread that have waited and not ended; counted always. */
  fibers: number
  /** Reads the servers now: one of them closes. */
  look: (() => void) | undefined
  /** Sends figures to the parent of this process, which is a worker. */
  report: ((figures: unknown) => void) | undefined
} = { request: undefined, servers: new Set(), fibers: 0, look: undefined, report: undefined }
