/**
 * The engine in a file, for the journal of `corespun run`, which needs values and no jobs.
 *
 * For the other folders of this package; not part of its API.
 */
export type { Engine, KeyValue } from './engine/engine.ts'
export { sqliteEngine } from './engine/sqlite/sqlite.ts'
