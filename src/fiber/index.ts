/**
 * `corespun/fiber`: computations that can be joined and interrupted, and scopes that own them.
 *
 * docs/design/fibers.md has the guarantees and the design.
 * @module corespun/fiber
 */
import { register, refuseClass } from '../transport/internal.ts'
import { Schedule } from './combine/schedule.ts'
import { Fiber } from './core/fiber.ts'
import { FiberLocal } from './core/locals.ts'
import { Yieldable } from './core/op.ts'
import { BaseScope } from './core/base-scope.ts'
import { Scope } from './core/scope.ts'
import { FiberError, InterruptedError } from './errors.ts'
import { Supervisor } from './combine/supervisor.ts'
import { Barrier } from './share/barrier.ts'
import { Cache } from './share/cache.ts'
import { Deferred } from './share/deferred.ts'
import { FiberMap, FiberSet } from './share/fiber-map.ts'
import { Latch } from './share/latch.ts'
import { Pool } from './share/pool.ts'
import { PubSub } from './share/pub-sub.ts'
import { Dequeue } from './share/queue.ts'
import { RateLimiter } from './share/rate-limiter.ts'
import { Ref, SynchronizedRef } from './share/ref.ts'
import { RwLock } from './share/rw-lock.ts'
import { Semaphore } from './share/semaphore.ts'

export { FiberError, type FiberCodes, InterruptedError, type FiberFacts } from './errors.ts'
export {
  type Defect,
  Exit,
  type Failed,
  type Failure,
  type Interruption,
  type Success,
  exitValue,
} from './core/exit.ts'
export { type Runnable } from './core/runnable.ts'
export { Schedule, type ScheduleDriver, type ScheduleOptions } from './combine/schedule.ts'

register(FiberError, { cid: 'corespun.FiberError' })
register(InterruptedError, { cid: 'corespun.InterruptedError' })
refuseClass(Fiber, 'a fiber belongs to its thread; send what its join() resolves to')
refuseClass(Yieldable, 'an operation belongs to its thread; create it there: on(zone, function* () { ... })')
for (const scope of [Scope, BaseScope])
  refuseClass(scope, 'a scope belongs to its thread; open one in the function that runs there')
refuseClass(FiberLocal, 'its values belong to the fibers of one thread; send the value')
const SHARED = new Set<object | null>(
  [
    ...[Barrier, Cache, Deferred, Dequeue, FiberMap, FiberSet, Latch, Pool, PubSub, RateLimiter, Ref],
    ...[RwLock, Semaphore, Supervisor, SynchronizedRef],
  ].map(({ prototype }) => prototype as object),
)
function isShared(value: object): boolean {
  const own = Object.getPrototypeOf(value) as object | null
  return SHARED.has(own) || SHARED.has(own && Object.getPrototypeOf(own))
}
// One for all of them: each class that is refused is compared with each value that may be a stream.
refuseClass(
  Object.defineProperty(() => {}, Symbol.hasInstance, { value: isShared }),
  'it belongs to the fibers of its thread; share a Channel, a Lock or a store instead',
)
refuseClass(Schedule, 'its functions belong to its thread; create it in the function that runs there')
export { fork, type AnyBody, type FailureOf, type ForkOptions, type ValueOf } from './core/fork.ts'
export type { Waitable } from './core/endings.ts'
export { Fiber, type FiberStatus } from './core/fiber.ts'
export { type Op, type Operation, type Step } from './core/op.ts'
export { fail, fromExit } from './core/promises.ts'
export { yieldNow } from './scheduler/yielding.ts'

export { onError, type LostFiberError } from './scheduler/on-error.ts'
export { never, sleep } from './scheduler/sleep.ts'
export { attempt } from './core/attempt.ts'
export {
  acquireRelease,
  addFinalizer,
  currentFiber,
  ensuring,
  interruptible,
  scoped,
  uninterruptible,
  uninterruptibleMask,
} from './core/resources.ts'
export type { AnyScope, Finalizer } from './core/base-scope.ts'
export { Scope, type ScopeOptions } from './core/scope.ts'
export { all, allSettled, any, catchAll, exitOf, race, suspend, timeout } from './combine/combine.ts'
export { parallelFinalizers } from './combine/finalizers.ts'
export { Supervisor, type SupervisorOptions } from './combine/supervisor.ts'
export { validate, zip } from './combine/validate.ts'
export { Barrier, type BarrierOptions } from './share/barrier.ts'
export { Cache, type CacheOptions } from './share/cache.ts'
export { Deferred } from './share/deferred.ts'
export { FiberMap, FiberSet, type FiberSetOptions } from './share/fiber-map.ts'
export { Latch, type LatchOptions } from './share/latch.ts'
export type { LineOptions, WaitOptions } from './share/line.ts'
export { Pool, type PoolOptions } from './share/pool.ts'
export { PubSub } from './share/pub-sub.ts'
export { Dequeue, Queue } from './share/queue.ts'
export { RateLimiter, type RateLimiterOptions, type TokenOptions } from './share/rate-limiter.ts'
export { Ref, SynchronizedRef } from './share/ref.ts'
export { RwLock } from './share/rw-lock.ts'
export { type PermitOptions, Semaphore, type SemaphoreOptions } from './share/semaphore.ts'
export { forEach, type ForEachOptions } from './combine/for-each.ts'
export { on } from './remote/on.ts'
export { repeat, retry } from './combine/retry.ts'
export { FiberLocal } from './core/locals.ts'
export { dump, dumpText, type FiberDump } from './core/dump.ts'
