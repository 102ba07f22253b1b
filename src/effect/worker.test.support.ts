/**
 * What the zones of zones.test.ts run: services, classes and functions that return Effects.
 *
 * The module is loaded by the test and by each worker, so classes are registered on both sides.
 */
import * as Cause from 'effect/Cause'
import * as Context from 'effect/Context'
import * as Data from 'effect/Data'
import * as Effect from 'effect/Effect'
import * as Layer from 'effect/Layer'
import * as ManagedRuntime from 'effect/ManagedRuntime'
import * as Option from 'effect/Option'
import * as References from 'effect/References'
import * as Schema from 'effect/Schema'
import { register } from '../transport/index.ts'
import { zone } from '../zone/index.ts'
import { carryReference, fromZone } from './index.ts'

export class User extends Schema.Class<User>('User')({ name: Schema.String, age: Schema.Number }) {
  get isAdult(): boolean {
    return this.age >= 18
  }
}

export class TooYoung extends Schema.TaggedError<TooYoung>()('TooYoung', { user: User }) {}

export class Missing extends Data.TaggedError('Missing')<{ readonly id: number }> {}

register(User, { cid: 'effect-test.User' })
register(TooYoung, { cid: 'effect-test.TooYoung' })
register(Missing, { cid: 'effect-test.Missing' })

export class Greeter extends Context.Service<Greeter, { greet(name: string): Effect.Effect<string> }>()(
  'effect-test/Greeter',
) {}

export class Unknown extends Context.Service<Unknown, { readonly no: true }>()('effect-test/Unknown') {}

export const Tenant = Context.Reference<string>('effect-test/Tenant', { defaultValue: () => 'nobody' })
carryReference(Tenant)

export function setup(): ManagedRuntime.ManagedRuntime<Greeter, never> {
  return ManagedRuntime.make(Layer.succeed(Greeter)({ greet: (name) => Effect.succeed(`Hello ${name}`) }))
}

export const older = (user: User, years: number): Effect.Effect<User, TooYoung> =>
  user.age + years < 18
    ? Effect.fail(new TooYoung({ user }))
    : Effect.succeed(new User({ name: user.name, age: user.age + years }))

export const find = (id: number): Effect.Effect<Option.Option<string>, Missing> =>
  id < 0 ? new Missing({ id }) : Effect.succeed(id === 0 ? Option.none() : Option.some(`user ${id}`))

export const greets = (name: string): Effect.Effect<string, never, Greeter> =>
  Effect.flatMap(Greeter, (greeter) => greeter.greet(name))

export const needs = (): Effect.Effect<boolean, never, Unknown> => Effect.map(Unknown, ({ no }) => no)

export const dies = (): Effect.Effect<never> => Effect.die(new RangeError('a defect'))

export const interrupts = (): Effect.Effect<never> => Effect.interrupt

export const several = (): Effect.Effect<never, string> =>
  Effect.failCause(Cause.combine(Cause.fail('one'), Cause.die('two')))

export const later = async (): Promise<Effect.Effect<number>> => Effect.succeed(7)

/** Sets the first number when it has begun, the second when its finalizer runs. */
export const waits = (flags: Int32Array): Effect.Effect<never> =>
  Effect.sync(() => {
    Atomics.store(flags, 0, 1)
    Atomics.notify(flags, 0)
  }).pipe(
    Effect.andThen(Effect.never),
    Effect.onInterrupt(() =>
      Effect.sync(() => {
        Atomics.store(flags, 1, 1)
        Atomics.notify(flags, 1)
      }),
    ),
  )

export const seen = (): Effect.Effect<
  readonly [tenant: string, log: unknown, traceId: string, parent: string]
> =>
  Effect.gen(function* () {
    const span = yield* Effect.orDie(Effect.currentSpan)
    const parent = Option.getOrThrow(span.parent)
    const annotations = yield* References.CurrentLogAnnotations
    return [yield* Tenant, annotations.request, span.traceId, parent.spanId] as const
  }).pipe(Effect.withSpan('seen'))

/** The same in another zone: a hop of a hop. */
export const seenFrom = (id: string, url: string): ReturnType<typeof seen> =>
  Effect.orDie(fromZone(zone.get(id)).module<typeof import('./worker.test.support.ts')>(url).seen())

export const hasParent = (): Effect.Effect<boolean> =>
  Effect.map(Effect.option(Effect.currentParentSpan), Option.isSome)
