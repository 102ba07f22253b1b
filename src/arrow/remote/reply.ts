/**
 * What a hop asks for, and what comes back: from a worker of this process, or from another machine.
 *
 * Types alone; hop.ts and far.ts ask, worker.ts and far-worker.ts reply.
 */
import type { Failed } from '../../fiber/index.ts'

/** What a worker has measured of the nodes since its last reply. */
export type Measured = readonly (readonly [index: number, calls: number, ms: number])[]

/** The reply of a worker. `ms` is the time of the run; `measured` is present when it is new. */
export type Reply =
  | { readonly is: 'value'; readonly value: unknown; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'failed'; readonly exit: Failed; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'unknown' }

export type Ask = (input: unknown, signal: AbortSignal | undefined) => Promise<Reply>
