/**
 * Again and again, as a schedule says: `retry` while a body fails, `repeat` while it succeeds.
 *
 * The body runs in the fiber that is there. It must be a function or an arrow: a generator object runs once.
 */
import { wrong } from '../errors.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import { type Operation, isGenerator } from '../core/op.ts'
import { exitWithin, fromExit, within } from './promises.ts'
import { Schedule } from './schedule.ts'
import { turn } from '../scheduler/scheduler.ts'
import { sleep } from '../scheduler/sleep.ts'

const random = (): number => turn.scheduler.random()

/**
 * Run a body until it has a value; after each failure `schedule` is asked with the failure whether and when
 * to run again. When it says no, the last failure is this one's. Defects and interruptions end it at once.
 * @throws {FiberError} `FIBER_ARGUMENT`.
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
 * Run a body, and after each value ask `schedule` with it whether and when to run again; gives the last
 * value. A body that does not succeed ends it.
 * @throws {FiberError} `FIBER_ARGUMENT`.
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
