/**
 * What the compiler must infer and refuse: items and failures of streams, through stages and sinks.
 *
 * The checks are made by tsc; nothing is run but one test that states it.
 */
import { test } from 'node:test'
import { type FiberError, Schedule, attempt, fail, fork, timeout } from '../fiber/index.ts'
import { Stream, type StreamError, type StreamRun } from './index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<_T extends true>(): void {}

class Missing {
  readonly missing = true
}

function never(): void {
  const numbers = Stream.of(1, 2)
  is<Same<typeof numbers, Stream<number>>>()
  const read = Stream.from(
    (async function* () {
      yield 'a'
    })(),
  )
  is<Same<typeof read, Stream<string, unknown>>>()
  const opened = Stream.from(() => ['a'])
  is<Same<typeof opened, Stream<string, unknown>>>()

  const worked = numbers.mapConcurrent(function* (n) {
    if (n > 1) yield* fail(new Missing())
    return String(n)
  })
  is<Same<typeof worked, Stream<string, Missing>>>()
  const asynchronous = numbers.mapConcurrent(async (n) => n > 1)
  is<Same<typeof asynchronous, Stream<boolean, unknown>>>()
  const late = worked.timeout(1)
  is<Same<typeof late, Stream<string, Missing | StreamError<'STREAM_TIMEOUT'>>>>()
  const caught = worked.catchAll((error) => {
    is<Same<typeof error, Missing>>()
    return Stream.of(error.missing)
  })
  is<Same<typeof caught, Stream<string | boolean>>>()
  const tapped = numbers.tap(() => timeout(5, () => 1))
  is<Same<typeof tapped, Stream<number, FiberError<'FIBER_TIMEOUT'>>>>()

  const chosen = Stream.of<number | string>(1, 'a').filter((item) => typeof item === 'string')
  is<Same<typeof chosen, Stream<string>>>()
  const pairs = numbers.zip(worked)
  is<Same<typeof pairs, Stream<[number, string], Missing>>>()
  const merged = numbers.merge(worked)
  is<Same<typeof merged, Stream<number | string, Missing>>>()
  const grouped = worked.groupBy(
    (text) => text.length,
    (group, key) => {
      is<Same<typeof key, number>>()
      is<Same<typeof group, Stream<string, Missing>>>()
      return group.map(() => key)
    },
  )
  is<Same<typeof grouped, Stream<number, Missing | StreamError<'STREAM_GROUPS_FULL'>>>>()

  const collected = worked.runCollect()
  is<Same<typeof collected, StreamRun<string[], Missing>>>()
  const fiber = fork(collected)
  is<Same<Awaited<ReturnType<typeof fiber.join>>, string[]>>()
  const body = function* () {
    return yield* worked.runHead()
  }
  const exit = fork(body).exit
  if (exit?.kind === 'failure') is<Same<typeof exit.error, Missing>>()
  if (exit?.kind === 'success') is<Same<typeof exit.value, string | undefined>>()

  worked.retry(Schedule.recurs(1).while((error: Missing) => error.missing))
  // @ts-expect-error -- a schedule of other failures
  worked.retry(Schedule.recurs(1).while((error: Error) => error.message === ''))
  // @ts-expect-error -- not a stream
  numbers.flatMap((n) => [n])
  // @ts-expect-error -- a window has no unit
  numbers.window(5)
  attempt(collected)
}

test('the types of this file are checked by the compiler', () => {
  void never
})
