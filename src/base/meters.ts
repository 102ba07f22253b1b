/**
 * Who counts what this thread does: nobody, until src/metrics is loaded and fills these slots.
 *
 * They are here since what counts is above what is counted. An empty slot costs its reader one comparison.
 */

/** A time in units of who counts: requests that have begun in one batch have the same one. */
export interface Moment {
  readonly ticks: number
  /** For how long its thread had been idle by then; known once the batch has ended with it open. */
  readonly idle: number
}

/** A request while it is counted: what its exchange keeps. */
export interface Counted {
  /** Counts its end; `undefined`: nobody does, or it was counted. */
  count: RequestCount | undefined
  /** When it began. */
  begun: Moment | undefined
  readonly method: string
  readonly aborted: boolean
}

/** Counts the requests of a route and method. */
export interface RequestCount {
  /**
   * Called once for each: its response is complete, or was given up.
   * @param status 0: the response has not begun.
   * @param bytes Of the body, as passed to the core.
   * @param request Its `begun`.
   */
  ended(status: number, bytes: number, request: Counted, isAborted: boolean): void
  /** Counts the same request, and notes that it was part of a trace. */
  traced(traceId: string, spanId: string): RequestCount
  /** Counts the same request, and the CPU time that it has used by then. */
  measured(used: { readonly cpuMs: number }): RequestCount
}

/** Calls `handle` at once. */
type Within = (handle: () => void) => void

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

/** A stage of an arrow that runs often: its measured calls, and how long they took. */
export interface StageCount {
  readonly arrow: string
  readonly stage: string
  readonly calls: number
  readonly ms: number
}

/** An attempt of a step of a durable run. */
interface StepAttempt {
  /** The name of its definition. */
  readonly run: string
  /** Of the run. */
  readonly key: string
  readonly step: string
  readonly attempt: number
}

/** Makes spans of steps. */
export interface StepSpans {
  /** The headers of the trace that a run begins in. */
  current(): object | undefined
  /** @param trace What `current` has returned when the run was started, here or elsewhere. */
  begin(
    attempt: StepAttempt,
    trace: object | undefined,
  ): {
    within<Result>(body: () => Result): Result
    /** @param failed Absent: it has succeeded. */
    end(failed?: { readonly error: unknown }): void
  }
}

export const meters: {
  /**
   * A request begins; `route` is the pattern that fits it. Sets what it has of it. Returns what is to handle
   * it, where that is to be measured.
   */
  request: ((request: Counted, route: string | undefined) => Within | undefined) | undefined
  /** A core passes requests to the app now, whose responses it takes at the end. */
  isInBatch: boolean
  /** That has ended. Set when a request has begun in it. */
  batchEnded: (() => void) | undefined
  /** A task has ended that is part of a trace. */
  task: ((zone: string, name: string, ms: number, traceId: string, spanId: string) => void) | undefined
  /** This process has ended a durable job, of a zone and a function, or a run, of a definition. */
  ended: ((key: 'jobsEnded' | 'runsEnded', ...of: readonly string[]) => void) | undefined
  /** Set by corespun/telemetry. */
  steps: StepSpans | undefined
  /** A call names a tenant, whose hash has these halves; mostly another one than the last call. */
  tenant: ((tenant: string, low: number, high: number) => void) | undefined
  /** A metric of corespun/napa: 0 a number, 1 a rate, 2 percentiles; and what it belongs to. */
  napa:
    | ((type: 0 | 1 | 2, act: 'set' | 'add', value: number, ...of: [string, string, string]) => void)
    | undefined
  /** The stages of the arrows of this thread that run often; once arrows are loaded. */
  stages: (() => Iterable<StageCount>) | undefined
  /** The servers of this thread that listen. */
  readonly servers: Set<() => ServerFigures>
  /** Fibers of this thread that have waited and not ended; counted always. */
  fibers: number
  /** Reads the servers now: one of them closes. */
  look: (() => void) | undefined
  /** Sends figures to the parent of this process, which is a worker. */
  report: ((figures: unknown) => void) | undefined
  /** The parent of this process asks something, whose reply is reported. */
  asked: ((question: unknown) => void) | undefined
  /** The connections of this thread to fleets that are open, and where they lead. */
  readonly fleets: Map<object, string>
} = {
  request: undefined,
  isInBatch: false,
  batchEnded: undefined,
  task: undefined,
  ended: undefined,
  steps: undefined,
  tenant: undefined,
  napa: undefined,
  stages: undefined,
  servers: new Set(),
  fibers: 0,
  look: undefined,
  report: undefined,
  asked: undefined,
  fleets: new Map(),
}

/**
 * The fleets that this thread is connected to: of several connections to one the last.
 * @param where Those that lead there alone.
 */
export function connectedFleets<Fleet>(where?: readonly string[]): Fleet[] {
  const byAddress = new Map([...meters.fleets].map(([fleet, address]) => [address, fleet]))
  const found = [...byAddress].filter(([address]) => where?.includes(address) !== false)
  return found.map(([, fleet]) => fleet) as Fleet[]
}
