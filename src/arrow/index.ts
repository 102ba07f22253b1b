/**
 * `corespun/arrow`: pipelines as values, which are fused, run in zones and can be explained.
 *
 * How they run and what was measured: docs/design/arrow.md.
 * @module corespun/arrow
 */
import { register, refuseClass } from '../transport/internal.ts'
import { Arrow } from './api/arrow.ts'
import { ArrowError } from './errors.ts'
import { Interpreter } from './run/interpreter.ts'

export { Arrow } from './api/arrow.ts'
export {
  dup,
  effect,
  effectTotal,
  fail,
  fromFiber,
  fromFiber as liftM,
  fromRunnable,
  fromRunnable as fromEffect,
  getFirst,
  getSecond,
  identity,
  identity as id,
  ifNotThen,
  ifThen,
  ifThenElse,
  lift,
  liftAsync,
  succeed,
  swap,
  test,
  whileDo,
} from './api/constructors.ts'
export { Either, type Left, type Right } from './build/either.ts'
export { ArrowError, type ArrowCodes } from './errors.ts'
export type { StageContext } from './build/node.ts'
export type { StreamOptions } from './api/stream.ts'
export type { AnyFarZone } from '../zone/internal.ts'
export { exported } from './remote/serialize.ts'
export type { Join, Kind, Run } from './types.ts'

register(ArrowError, { cid: 'corespun.ArrowError' })
refuseClass(Arrow, 'an arrow runs in a zone by arrow.on(zone); send its input with arrow.on(zone).run(input)')

// `liftAsync(tasks.parse)` type-checks, and passes the context to a call to a zone.
register(Interpreter, { cid: 'corespun.StageContext', save: refuseContext, load: refuseContext })

function refuseContext(): never {
  throw new ArrowError('ARROW_ARGUMENT', {
    name: 'the context of an asynchronous stage',
    expected: 'used in its own thread: write liftAsync((input) => call(input)), or pass context.signal',
    received: 'a value for another thread',
  })
}
