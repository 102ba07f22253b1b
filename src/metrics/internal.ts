/**
 * The figures of all threads as data, for the other folders of this package; not part of its API.
 *
 * `collect` begins nothing: a program calls `startMetrics` first.
 */
export { collect, unread } from './collect.ts'
export { anyConnected, connectedThreads, lookAtConnected } from './connected.ts'
export { metricsText, startMetrics } from './handler.ts'
export type { Family, Point } from './points.ts'
export { type SlowRecord, slowRecords } from './slow.ts'
export { type InstrumentKey, LISTED, numberOf } from './instruments.ts'
