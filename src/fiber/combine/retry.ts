/**
 * Runs a body again by a schedule: `retry` while it fails, `repeat` while it succeeds.
 *
 * The body runs in the fiber that is there. It must be a function or an arrow: a generator object runs once.
 */
import { wrong } from '../errors.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import { type Operation, isGenerator } from '../core/op.ts'
import { exitWithin, fromExit, within } from '../core/promises.ts'
import { Schedule } from './schedule.ts'
import { turn } from '../scheduler/scheduler.ts'
import { sleep } from '../scheduler/sleep.ts'

const random = (): number => turn.scheduler.random()

/**
 * Runs a body until it returns a value. After each failure `schedule` decides by the failure whether and when
 * to run it again; at its end the last failure is thrown. Defects and interruptions end it at once.
 * @throws {FiberError} `FIBER_ARGUMENT` when an argument is invalid; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Schedule, fork, retry } from 'corespun/fiber'
 *
 * let calls = 0
 * const load = async () => {
 *   calls += 1
 *   if (calls < 3) throw new Error('busy')
 *   return 'loaded'
 * }
 * assert.equal(await fork(retry(load, Schedule.exponential(1).and(Schedule.recurs(5)))).join(), 'loaded')
 * assert.equal(calls, 3)
 * ```
 */
export function* retry<const B extends AnyBody>(
  body: B,
  schedule: Schedule<FailureOf<B>>,
): Operation<ValueOf<B>, FailureOf<B>> {
  check('retry', body, schedule)
  const driver = schedule.start({ random })
  for (;;) {
    const exit = yield* exitWithin(body)
    const delayMs = exit.kind === 'failure' ? driver.next(exit.error, turn.scheduler.nowMs()) : undefined
    if (delayMs === undefined) return yield* fromExit(exit)
    yield* sleep(delayMs)
  }
}

/**
 * Runs a body again after each value, for which `schedule` decides whether and when; returns the last value.
 * A run that does not succeed ends it.
 * @throws {FiberError} `FIBER_ARGUMENT` when an argument is invalid; `FIBER_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Schedule, fork, repeat } from 'corespun/fiber'
 *
 * let calls = 0
 * assert.equal(await fork(repeat(() => (calls += 1), Schedule.recurs(2))).join(), 3)
 * ```
 */
export function* repeat<const B extends AnyBody>(
  body: B,
  schedule: Schedule<ValueOf<B>>,
): Operation<ValueOf<B>, FailureOf<B>> {
  check('repeat', body, schedule)
  const driver = schedule.start({ random })
  for (;;) {
    const value = (yield* within(body)) as ValueOf<B>
    const delayMs = driver.next(value, turn.scheduler.nowMs())
    if (delayMs === undefined) return value
    yield* sleep(delayMs)
  }
}

function check(call: string, body: unknown, schedule: unknown): void {
  if (isGenerator(body))
    throw wrong(`${call}(): the body`, 'a function or an arrow, which can run again', body)
  if (!(schedule instanceof Schedule)) throw wrong(`${call}(): the schedule`, 'a Schedule', schedule)
}
