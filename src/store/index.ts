/**
 * `corespun/store`: named maps that every thread of the process reads and writes synchronously.
 *
 * docs/design/store.md describes the guarantees and the implementation.
 * @module corespun/store
 */
import { refuseClass } from '../transport/internal.ts'
import { Watcher } from './watcher.ts'

export { StoreError, type StoreCodes } from './errors.ts'
export type { ComputeOptions, StoreOptions, WatchOptions, WriteOptions } from './options.ts'
export type { Shared, SharedList, SharedNumbers, SharedRecord, ShareOptions } from './share/share.ts'
export type { StoreStats } from './stats.ts'
export { Store } from './store.ts'
export { store } from './stores.ts'
export type { StoreEvent, Watcher } from './watcher.ts'

refuseClass(Watcher, 'a watcher belongs to its thread; send the store and call its watch() there')
