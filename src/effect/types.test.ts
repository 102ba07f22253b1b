/**
 * The types of Effects in zones: compiling this file is the test.
 *
 * A line under `@ts-expect-error` that compiles fails the build. One test runs; all else is only compiled.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Effect from 'effect/Effect'
import type { HttpRequest } from '../http/index.ts'
import type { ZoneCodes } from '../zone/index.ts'
import { type EffectZone, type Failures, type NotInWorker, type TaskError, handler } from './index.ts'
import type { Greeter, Missing, Unknown, TooYoung, User } from './worker.test.support.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<_Yes extends true>(): void {}
type Lost = TaskError | Failures<ZoneCodes>

declare const of: EffectZone<Greeter>
declare const user: User

/** Compiled, never called. */
export function calls(): void {
  const work = of.module<typeof import('./worker.test.support.ts')>('./worker.js')
  const older = work.older(user, 1)
  is<Same<typeof older, Effect.Effect<User, TooYoung | Lost>>>()
  const greets = work.greets('Ann')
  is<Same<typeof greets, Effect.Effect<string, Lost>>>()
  const needs = work.needs()
  is<Same<typeof needs, Effect.Effect<boolean, Lost, NotInWorker<Unknown>>>>()
  // @ts-expect-error the zone's workers have no such service
  void Effect.runPromise(needs)
  const later = work.later()
  is<Same<typeof later, Effect.Effect<number, Lost>>>()
  // @ts-expect-error an argument is missing
  work.older(user)
  // @ts-expect-error a class is not a function
  work.User(1)

  const added = of.run((a: number, b: number) => a + b, 1, 2)
  is<Same<typeof added, Effect.Effect<number, Lost>>>()
  // @ts-expect-error an argument has another type
  of.run((a: number) => a, 'x')
  const caught = work.find(1).pipe(
    Effect.catchTag('Missing', (error: Missing) => Effect.succeed(error.id)),
    Effect.catchTag('TASK_TIMEOUT', ({ facts }) => Effect.succeed(facts.timeoutMs)),
  )
  void caught
  // @ts-expect-error wrong arguments are defects
  work.find(1).pipe(Effect.catchTag('ZONE_ARGUMENT', () => Effect.void))
  handler((request: HttpRequest<'/user/:id'>) => Effect.succeed(request.params.id))
}

test('types are compiled', () => assert.ok(calls))
