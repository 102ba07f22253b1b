/**
 * Effect's own data types and the errors of this module, registered so that they travel.
 *
 * Their classes are internal to Effect, so each is found as the prototype of a value. Annotations of causes
 * stay behind: they refer to functions of their thread. `Redacted` is left out on purpose, so that it is
 * refused. Classes of programs (Schema.Class, Data.Class, tagged errors) need `register` of
 * corespun/transport.
 */
import * as Cause from 'effect/Cause'
import * as Chunk from 'effect/Chunk'
import * as DateTime from 'effect/DateTime'
import * as Duration from 'effect/Duration'
import * as Exit from 'effect/Exit'
import * as Option from 'effect/Option'
import * as Result from 'effect/Result'
import { register } from '../transport/internal.ts'
import { CorespunFailure, TaskError } from './errors.ts'

register(CorespunFailure, { cid: 'corespun.effect.CorespunFailure' })
register(TaskError, { cid: 'corespun.effect.TaskError' })

function travels<Value extends object, Saved>(
  cid: string,
  sample: Value,
  save: (value: Value) => Saved,
  load: (saved: Saved) => Value,
): void {
  const named = { prototype: Object.getPrototypeOf(sample) as object }
  const type = Object.assign(function () {}, { prototype: named.prototype }) as unknown as new () => Value
  register(type, { cid: `effect.${cid}`, save, load })
}

travels(
  'Some',
  Option.some<unknown>(0) as Option.Some<unknown>,
  ({ value }) => value,
  (value) => Option.some(value) as Option.Some<unknown>,
)
travels(
  'None',
  Option.none(),
  () => 0,
  () => Option.none(),
)
travels(
  'Success',
  Result.succeed<unknown>(0) as Result.Success<unknown, never>,
  ({ success }) => success,
  (success) => Result.succeed(success) as Result.Success<unknown, never>,
)
travels(
  'Failure',
  Result.fail<unknown>(0) as Result.Failure<never, unknown>,
  ({ failure }) => failure,
  (failure) => Result.fail(failure) as Result.Failure<never, unknown>,
)
travels(
  'ExitSuccess',
  Exit.succeed<unknown>(0) as Exit.Success<unknown>,
  ({ value }) => value,
  (value) => Exit.succeed(value) as Exit.Success<unknown>,
)
travels(
  'ExitFailure',
  Exit.fail<unknown>(0) as Exit.Failure<never, unknown>,
  ({ cause }) => cause,
  (cause) => Exit.failCause(cause) as Exit.Failure<never, unknown>,
)
travels(
  'Cause',
  Cause.fail<unknown>(0),
  ({ reasons }) => reasons,
  (reasons) => Cause.fromReasons(reasons),
)
travels('Fail', Cause.makeFailReason<unknown>(0), ({ error }) => error, Cause.makeFailReason)
travels('Die', Cause.makeDieReason(0), ({ defect }) => defect, Cause.makeDieReason)
travels('Interrupt', Cause.makeInterruptReason(), ({ fiberId }) => fiberId, Cause.makeInterruptReason)
travels('Chunk', Chunk.fromIterable<unknown>([0]), Chunk.toReadonlyArray, Chunk.fromArrayUnsafe)
travels('Duration', Duration.millis(0), ({ value }) => value, durationOf)
travels('DateTime', DateTime.makeUnsafe(0), DateTime.toEpochMillis, (ms) => DateTime.makeUnsafe(ms))

function durationOf(value: Duration.DurationValue): Duration.Duration {
  if (value._tag === 'Millis') return Duration.millis(value.millis)
  if (value._tag === 'Nanos') return Duration.nanos(value.nanos)
  return value._tag === 'Infinity' ? Duration.infinity : Duration.negativeInfinity
}
