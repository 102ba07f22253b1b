/**
 * `corespun/store`: named maps that every thread of the process reads and writes synchronously.
 *
 * docs/design/store.md says how, and what is promised.
 */
export { StoreError, type StoreCodes } from './errors.ts'
export type { StoreSettings } from './settings.ts'
export { Store } from './store.ts'
export { store } from './stores.ts'
export type { ComputeOptions, StoreStats, WriteOptions } from './terms.ts'
export { type StoreEvent, Watch, type WatchOptions } from './watch.ts'
