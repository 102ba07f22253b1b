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
