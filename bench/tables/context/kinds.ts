/**
 * What the calls of table `context` take with them, and what its processes are ordered to do.
 *
 * Apart from the program of those processes, which calls zones when it is imported.
 */

/** The kinds, the one that the others are compared with first. */
export const KINDS = ['nothing', 'registered', 'storage', 'value', 'trace', 'cpu'] as const
export type Kind = (typeof KINDS)[number]

/** A slice. */
export interface Calls {
  readonly calls: number
}

/** What a call took, on average over a slice. */
export interface CallsFound {
  readonly ns: number
  readonly cpuNs: number
}
