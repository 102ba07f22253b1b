/**
 * `corespun/sync`: locks, semaphores, channels and counters for all threads of the process.
 *
 * Known by name, or passed as handles: an argument, a result, a value in a store.
 */
import { register } from '../transport/index.ts'
import { registerHandle } from '../transport/internal.ts'
import { Channel } from './channel.ts'
import { AtomicCounter } from './counter.ts'
import { SyncError } from './errors.ts'
import { Lock, RwLock, Semaphore } from './locks.ts'
import { Arrived, type Saved, saveThing } from './thing.ts'

export { Channel } from './channel.ts'
export { AtomicCounter } from './counter.ts'
export { SyncError, type SyncCodes } from './errors.ts'
export type { Held } from './guard.ts'
export { Lock, RwLock, Semaphore } from './locks.ts'
export type { BlockOptions, WaitOptions } from './turn.ts'

const load =
  <T>(make: (arrived: Arrived) => T) =>
  (saved: Saved): T =>
    make(new Arrived(saved))

registerHandle({
  tag: 'corespun.Lock',
  is: Lock,
  save: saveThing,
  load: load((arrived) => new Lock(arrived)),
})
registerHandle({
  tag: 'corespun.RwLock',
  is: RwLock,
  save: saveThing,
  load: load((arrived) => new RwLock(arrived)),
})
registerHandle({
  tag: 'corespun.Semaphore',
  is: Semaphore,
  save: saveThing,
  load: load((arrived) => new Semaphore(1, arrived)),
})
registerHandle({
  tag: 'corespun.Channel',
  is: Channel,
  save: saveThing,
  load: load((arrived) => new Channel(1, arrived)),
})
registerHandle({
  tag: 'corespun.AtomicCounter',
  is: AtomicCounter,
  save: saveThing,
  load: load((arrived) => new AtomicCounter(arrived)),
})
register(SyncError, { cid: 'corespun.SyncError' })
