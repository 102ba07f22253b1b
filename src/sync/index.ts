/**
 * `corespun/sync`: locks, semaphores, channels and counters for all threads of the process.
 *
 * They are found by name, or passed as handles: an argument, a result, a value in a store.
 * @module corespun/sync
 */
import { register } from '../transport/internal.ts'
import { SyncError } from './errors.ts'

export { Channel, type ChannelOptions } from './channel.ts'
export { AtomicCounter } from './counter.ts'
export { SyncError, type SyncCodes } from './errors.ts'
export type { GuardInfo } from './guard.ts'
export { Lock, RwLock } from './locks.ts'
export { type PermitOptions, Semaphore, type SemaphoreOptions } from './semaphore.ts'
export type { BlockOptions, WaitOptions } from './turn.ts'

register(SyncError, { cid: 'corespun.SyncError' })
