/**
 * `corespun/store`: named maps that every thread of the process reads and writes synchronously.
 *
 * docs/design/store.md describes the guarantees and the implementation.
 * @module corespun/store
 */
import { refuseClass } from '../transport/internal.ts'
import { TRef } from './atomic/t-ref.ts'
import { Transaction } from './atomic/transaction.ts'
import { Watcher } from './watcher.ts'

export {
  type AtomicOptions,
  type AtomicSyncOptions,
  atomically,
  atomicallySync,
} from './atomic/atomically.ts'
export { TRef } from './atomic/t-ref.ts'
export type { Transaction } from './atomic/transaction.ts'
export { StoreError, type StoreCodes } from './errors.ts'
export type { ComputeOptions, StoreOptions, WatchOptions, WriteOptions } from './options.ts'
export type { Shared, SharedList, SharedNumbers, SharedRecord, ShareOptions } from './share/share.ts'
export type { StoreStats } from './stats.ts'
export { Store } from './store.ts'
export { store } from './stores.ts'
export type { StoreEvent, Watcher } from './watcher.ts'

refuseClass(Watcher, 'a watcher belongs to its thread; send the store and call its watch() there')
refuseClass(TRef, 'it belongs to its thread; keep what several threads change in a store')
refuseClass(Transaction, 'a transaction belongs to its thread; call atomically() there')
