/**
 * What the runs of a definition have in common: where they are kept, and how they are held here.
 *
 * Types alone, so that who looks at a run and who has one need not import each other.
 */
import type { Operation } from '../fiber/index.ts'
import type { Engine, JobLimit, KeyValue, Limiter, Queue, Rank } from '../fleet/internal.ts'
import type { Parent } from './records.ts'

/** How a run is started. */
export interface Starting {
  readonly ttlMs?: number | undefined
  readonly rank?: Rank | undefined
  readonly limit?: JobLimit | undefined
}

/** The runs of a definition, for a run that has started one of them. */
export interface Children {
  /** Resolves when it is kept; the second time nothing is started. Its end sends a signal to its parent. */
  start(key: string, input: unknown, parent: Parent, how: Starting): Promise<void>
  /** Of one that has ended. */
  result(key: string): Promise<unknown>
  cancel(key: string): Promise<boolean>
}

/** A run that has ended, for the one that has started it. */
export interface ReportedRun {
  readonly id: string
  readonly key: string
}

/** Where the runs of a definition are kept. */
export interface Room {
  readonly engine: Engine
  readonly name: string
  readonly queue: Queue
  readonly heads: KeyValue
  readonly journals: KeyValue
  readonly boxes: KeyValue
  /** What runs show of themselves; opened by the first who needs it. */
  readonly exposed: () => Promise<KeyValue>
  /** Which process has a run, and what runs there; opened by the first who needs it. */
  readonly holders: () => Promise<KeyValue>
  /** By the clock on the wall, in ms since 1970. */
  readonly nowMs: () => number
  /** Reports the end of a run to that which has started it. */
  readonly report: (parent: Parent, child: ReportedRun) => Promise<void>
}

/** The release that this process offers, and those of others: see releases.ts. */
export interface Offered {
  readonly own: string
  has(release: string): Promise<boolean>
  end(): Promise<void>
}

/** Those of a definition that this process has. */
export interface OwnRoom extends Room {
  readonly body: (input: never) => Operation<unknown, unknown>
  readonly leaseMs: number
  readonly idleMs: number
  readonly limiter: Limiter
  /** `undefined`: this process takes runs of any. */
  readonly releases: Offered | undefined
  /** Whether runs are called twice and compared. */
  readonly check: boolean
  /** Those of another definition, which another process may have. */
  readonly children: (name: string) => Promise<Children>
}
