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

/** @param load Returns a value of the class of the sample. */
function travels<Value extends object, Saved>(
  cid: string,
  sample: Value,
  save: (value: Value) => Saved,
  load: (saved: Saved) => object,
): void {
  const prototype = Object.getPrototypeOf(sample) as object
  const type = Object.assign(function () {}, { prototype }) as unknown as new () => Value
  register(type, { cid: `effect.${cid}`, save, load: load as (saved: Saved) => Value })
}

travels('Some', Option.some<unknown>(0) as Option.Some<unknown>, ({ value }) => value, Option.some)
travels('None', Option.none(), () => 0, Option.none)
travels(
  'Success',
  Result.succeed(0) as Result.Success<unknown, never>,
  ({ success }) => success,
  Result.succeed,
)
travels('Failure', Result.fail(0) as Result.Failure<never, unknown>, ({ failure }) => failure, Result.fail)
travels('ExitSuccess', Exit.succeed(0) as Exit.Success<unknown>, ({ value }) => value, Exit.succeed)
travels('ExitFailure', Exit.fail(0) as Exit.Failure<never, unknown>, ({ cause }) => cause, Exit.failCause)
travels('Cause', Cause.fail<unknown>(0), ({ reasons }) => reasons, Cause.fromReasons)
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
