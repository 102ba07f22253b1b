/**
 * What arrows, streams and zones need of a fiber that its users do not.
 *
 * For the other folders of this package; not part of its API.
 */
export { Settling } from './core/attempt.ts'
export { decided } from './combine/combine.ts'
export { isYieldable } from './core/endings.ts'
export { checkedFailed, flatExits, isValue, thrownBy, withErrors, withOthers } from './core/exit.ts'
export { isTrouble, troublesBeside, troublesIn } from './core/fiber-scope.ts'
export { RUNNABLE, isRunnable } from './core/runnable.ts'
export { forkAsked, forkIn, isProgram } from './core/fork.ts'
export type { Child } from './core/base-scope.ts'
export { SUPERVISOR } from './core/extra.ts'
export { News, type NewsSource } from './core/news.ts'
export { Nursery, inNursery } from './core/nursery.ts'
export { Op, type Waiter, Yieldable, isGenerator, running } from './core/op.ts'
export { exitWithin, inline, within } from './core/promises.ts'
export { failedFrom } from './core/rejections.ts'
export { stepAside } from './scheduler/yielding.ts'
export { type Ready, Scheduler, turn } from './scheduler/scheduler.ts'
export { runningFiber } from './core/resources.ts'
