/**
 * `corespun/arrow`: computations as values, fused, placed on zones and explained.
 *
 * docs/design/arrow.md says how they run, and what was measured.
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
  fst,
  id,
  id as identity,
  ifNotThen,
  ifThen,
  ifThenElse,
  lift,
  liftAsync,
  snd,
  succeed,
  swap,
  test,
  whileDo,
} from './build/constructors.ts'
export { Either, type Left, type Right } from './build/either.ts'
export { ArrowError, type ArrowCodes } from './errors.ts'
export type { StageContext } from './build/node.ts'
export { stayHere } from './remote/place.ts'
export type { StreamOptions } from './build/stream.ts'
export { exported } from './remote/travel.ts'
export type { Join, Kind, Run } from './types.ts'

register(ArrowError, { cid: 'corespun.ArrowError' })
