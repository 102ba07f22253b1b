/**
 * `corespun/arrow`: pipelines as values, which are fused, run in zones and can be explained.
 *
 * How they run and what was measured: docs/design/arrow.md.
 */
import { register } from '../transport/index.ts'
import { ArrowError } from './errors.ts'

export { Arrow } from './build/arrow.ts'
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
  getFirst as fst,
  getSecond,
  getSecond as snd,
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
} from './build/constructors.ts'
export { Either, type Left, type Right } from './build/either.ts'
export { ArrowError, type ArrowCodes } from './errors.ts'
export type { StageContext } from './build/node.ts'
export type { StreamOptions } from './build/stream.ts'
export type { Settled } from '../zone/index.ts'
export { exported } from './remote/serialize.ts'
export type { Join, Kind, Run } from './types.ts'

register(ArrowError, { cid: 'corespun.ArrowError' })
