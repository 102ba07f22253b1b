/**
 * What `corespun test` needs of the processes that play its parts.
 *
 * For the other folders of this package; not part of its API.
 */
export type { CheckBegun, CheckReport } from './part.ts'
