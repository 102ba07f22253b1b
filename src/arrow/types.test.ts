/**
 * What the compiler must accept and must refuse. Most of this file is checked by compiling it.
 *
 * A line under @ts-expect-error that compiles is an error of the compilation, so this cannot pass by chance.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Arrow,
  type ArrowError,
  Either,
  dup,
  effect,
  fail,
  getFirst,
  id,
  ifThenElse,
  lift,
  liftAsync,
  getSecond,
  succeed,
  swap,
  test as testing,
  whileDo,
} from './index.ts'
import { Schedule } from '../fiber/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(..._proof: Same<A, B> extends true ? [] : ['the types differ', A, B]): void {}

const length = lift((text: string) => text.length)
const half = lift((x: number) => x / 2)
const later = liftAsync(async (x: number) => String(x))
const parse = effect(
  (text: string) => Number(text),
  () => 'bad' as const,
)

test('run of a synchronous arrow is a value, of an asynchronous one a promise', async () => {
  const value = length.andThen(half).run('four')
  same<typeof value, number>()
  assert.equal(value, 2)
  const promise = length.andThen(later).run('four')
  same<typeof promise, Promise<string>>()
  assert.equal(await promise, '4')
  const timed = half.timeout(1000)
  same<typeof timed, Arrow<number, number, ArrowError<'ARROW_TIMEOUT'>, 'async'>>()
  assert.equal(await timed.run(3), 1.5)
})

test('failures add up, are mapped and are caught, in the types too', () => {
  const both = parse.andThen(fail('never' as const))
  same<typeof both, Arrow<string, never, 'bad' | 'never', 'sync'>>()
  const mapped = parse.mapError((error) => ({ error }))
  same<typeof mapped, Arrow<string, number, { error: 'bad' }, 'sync'>>()
  const caught = parse.catchAll(() => succeed('none'))
  same<typeof caught, Arrow<string, number | 'none', never, 'sync'>>()
  const exit = caught.runExit('1')
  assert.deepEqual(exit, { kind: 'success', value: 1 })
})

test('pairs and choices are inferred', () => {
  const merged = length.merge(id<string>())
  same<typeof merged, Arrow<string, [number, string], never, 'sync'>>()
  const zipped = length.zipWith(id<string>(), (count, text) => text.repeat(count))
  same<typeof zipped, Arrow<string, string, never, 'sync'>>()
  assert.equal(merged.andThen(swap()).andThen(getFirst()).run('a'), 'a')
  const chosen = length.choice(half)
  same<typeof chosen, Arrow<Either<string, number>, number, never, 'sync'>>()
  assert.equal(chosen.run(Either.right(3)), 1.5)
  assert.deepEqual(dup<number>().andThen(getSecond()).run(1), 1)
})

test('an arrow fits where one of a narrower input, a wider output or more failures is expected', () => {
  const wide: Arrow<'a' | 'b', number | string, 'bad' | Error> = parse
  const either: Arrow<string, number> = length
  assert.ok([wide, either])
})

test('what does not compile', () => {
  const same_ = id<string>()
  const empty = lift((text: string) => text === '')
  const numeric = Schedule.forever.while((error: number) => error < 1)
  const refused: (() => unknown)[] = [
    // @ts-expect-error: the output is not an input of the next
    () => half.andThen(length),
    // @ts-expect-error: the same, the other way
    () => length.compose(half),
    // @ts-expect-error: wrong input
    () => length.run(4),
    // @ts-expect-error: two inputs that nothing satisfies
    () => length.merge(half).run('x'),
    // @ts-expect-error: a condition that is no boolean
    () => ifThenElse(length, same_, same_),
    // @ts-expect-error: a body that is not a loop's
    () => whileDo(empty, length),
    // @ts-expect-error: test takes a boolean
    () => testing(length),
    // @ts-expect-error: swap takes a pair
    () => length.andThen(swap<number, number>()),
    // @ts-expect-error: a promise is not a number
    () => later.run(1).length,
    // @ts-expect-error: the schedule is for other failures
    () => parse.retry(numeric),
    // @ts-expect-error: a failure that is not handled
    () => parse satisfies Arrow<string, number, never>,
    // @ts-expect-error: a synchronous arrow was promised
    () => later satisfies Arrow<number, string, never, 'sync'>,
  ]
  assert.equal(refused.length, 12)
})
