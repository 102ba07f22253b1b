/**
 * `skein/fiber`: computations that can be joined and interrupted, and scopes that own them.
 *
 * docs/design/fibers.md says how, and what is promised.
 */
import { register } from '../transport/index.ts'
import { FiberError, InterruptedError } from './errors.ts'

export { FiberError, type FiberCodes, InterruptedError, type WhichFiber } from './errors.ts'
export {
  type Defect,
  Exit,
  type Failed,
  type Failure,
  type Interruption,
  type Success,
  exitValue,
  flatExits,
  thrownBy,
  withOthers,
} from './exit.ts'
export { RUNNABLE, type Runnable, isRunnable } from './runnable.ts'
export { Schedule, type ScheduleDriver, type ScheduleStart } from './schedule.ts'

register(FiberError, { cid: 'skein.FiberError' })
register(InterruptedError, { cid: 'skein.InterruptedError' })
export {
  fork,
  forkAsked,
  isProgram,
  type AnyBody,
  type FailureOf,
  type ForkOptions,
  type ValueOf,
} from './fork.ts'
export type { Waitable } from './endings.ts'
export { Fiber, type FiberStatus } from './fiber.ts'
export { type Op, type Operation, type Step } from './op.ts'
export { fail, fromExit } from './promises.ts'
export { stepAside, yieldNow } from './aside.ts'
export type { Ready } from './scheduler.ts'
export { attempt, never, sleep } from './sleep.ts'
export {
  type Restore,
  acquireRelease,
  addFinalizer,
  currentFiber,
  runningFiber,
  scoped,
  uninterruptible,
  uninterruptibleMask,
} from './resources.ts'
export { Scope, type ScopeOptions } from './scope.ts'
export { all, allSettled, any, catchAll, exitOf, forEach, race, timeout } from './combine.ts'
export { on, type Place } from './place.ts'
export { repeat, retry } from './retry.ts'
export { FiberLocal } from './locals.ts'
export { dump, dumpText, type FiberDump } from './dump.ts'
