/**
 * What arrows and zones need of a fiber that its users do not.
 *
 * For the other folders of this package; not part of its API.
 */
export { checkedFailed, flatExits, isValue, withOthers } from './core/exit.ts'
export { RUNNABLE, isRunnable } from './core/runnable.ts'
export { forkAsked, isProgram } from './core/fork.ts'
export { stepAside } from './scheduler/yielding.ts'
export type { Ready } from './scheduler/scheduler.ts'
export { runningFiber } from './core/resources.ts'
