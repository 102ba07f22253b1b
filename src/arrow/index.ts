/**
 * `skein/arrow`: computations as values, fused, placed on zones and explained.
 *
 * docs/design/arrow.md says how they run, and what was measured.
 */
import { register } from '../transport/index.ts'
import { ArrowError } from './errors.ts'

export { Arrow } from './arrow.ts'
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
} from './constructors.ts'
export { Either, type Left, type Right } from './either.ts'
export { ArrowError, type ArrowCodes } from './errors.ts'
export type { StageContext } from './node.ts'
export { stayHere } from './place.ts'
export type { StreamOptions } from './stream.ts'
export { exported } from './travel.ts'
export type { Join, Kind, Run } from './types.ts'

register(ArrowError, { cid: 'skein.ArrowError' })
