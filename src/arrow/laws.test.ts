/**
 * The laws: nine of arrows, those of choice, and the unrolling of loops.
 *
 * Each is two arrows that must do the same, for random functions and inputs, new and hot, synchronous,
 * asynchronous and placed.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { zone } from '../zone/index.ts'
import { type Arrow, Either, getFirst, id, ifThenElse, lift, liftAsync, whileDo } from './index.ts'
import { HOT_RUNS } from './build/node.ts'

type Fn = Arrow<number, number>
type SerializedArrow = (x: number) => number
/** How a function with two numbers inside becomes an arrow. */
type Make = (by: number, times: number) => Fn

/** The same function as it is. */
const plain =
  (by: number, times: number): SerializedArrow =>
  (x) =>
    ((x + by) * times) % 10007
const pure: Make = (by, times) => lift(plain(by, times))
const waiting: Make = (by, times) => liftAsync(async (x: number) => ((x + by) * times) % 10007)

let laws: ReturnType<typeof zone.create>
before(() => {
  laws = zone.create('arrow-laws', { workers: 1 })
})
after(() => laws.close())

/** Captures nothing: the numbers come as its constants. */
const placed: Make = (by, times) =>
  id<number>()
    .merge(lift((x: number) => x).as([by, times] as const))
    .map(([x, [plus, factor]]) => ((x + plus) * factor) % 10007)
    .on(laws)

/** Three random functions: as arrows, and as they are. */
type Law = (
  arrows: readonly [Fn, Fn, Fn],
  plain: readonly [SerializedArrow, SerializedArrow, SerializedArrow],
) => readonly [Both, Both]
type Both = Arrow<never, unknown>

const law =
  <A>(make: (...of: Parameters<Law>) => readonly [Arrow<A, unknown>, Arrow<A, unknown>]): Law =>
  (arrows, plain) =>
    make(arrows, plain)

const assoc = ([[a, b], c]: readonly [readonly [number, number], number]): readonly [
  number,
  readonly [number, number],
] => [a, [b, c]]

const onNumbers: Readonly<Record<string, Law>> = {
  'id >>> f = f': law(([f]) => [id<number>().andThen(f), f]),
  'f >>> id = f': law(([f]) => [f.andThen(id()), f]),
  '(f >>> g) >>> h = f >>> (g >>> h)': law(([f, g, h]) => [f.andThen(g).andThen(h), f.andThen(g.andThen(h))]),
  'lift(g after f) = lift(f) >>> lift(g)': law(([f, g], [fPlain, gPlain]) => [
    lift((x: number) => gPlain(fPlain(x))),
    f.andThen(g),
  ]),
  'compose is andThen the other way round': law(([f, g]) => [f.compose(g), g.andThen(f)]),
  'while unrolls': law(([f]) => {
    const below = lift((x: number) => x < 5000 && x > 0)
    const body = f.map((x) => x + 1000)
    const loop = whileDo(below, body)
    return [loop, ifThenElse(below, body.andThen(loop), id<number>())]
  }),
}

const onPairs: Readonly<Record<string, Law>> = {
  'first(lift f) = lift(f x id)': law<readonly [number, number]>(([f], [fPlain]) => [
    f.first<number>(),
    lift(([a, b]: readonly [number, number]) => [fPlain(a), b]),
  ]),
  'first(f >>> g) = first f >>> first g': law<readonly [number, number]>(([f, g]) => [
    f.andThen(g).first<number>(),
    f.first<number>().andThen(g.first<number>()),
  ]),
  'first f >>> (id *** g) = (id *** g) >>> first f, for a pure g': law<readonly [number, number]>(
    ([f], [, gPlain]) => {
      const g = id<number>().split(lift(gPlain))
      return [f.first<number>().andThen(g), g.andThen(f.first<number>())]
    },
  ),
  'first f >>> fst = fst >>> f': law<readonly [number, number]>(([f]) => [
    f.first<number>().andThen(getFirst<number, number>()),
    getFirst<number, number>().andThen(f),
  ]),
}

const onNested: Readonly<Record<string, Law>> = {
  'first(first f) >>> assoc = assoc >>> first f': law<readonly [readonly [number, number], number]>(([f]) => [
    f.first<number>().first<number>().andThen(lift(assoc)),
    lift(assoc).andThen(f.first<readonly [number, number]>()),
  ]),
}

const sides = {
  left: (x: number): Either<number, number> => Either.left(x),
  mirror: (e: Either<number, number>): Either<number, number> =>
    e.kind === 'left' ? Either.right(e.value) : Either.left(e.value),
}

const onEithers: Readonly<Record<string, Law>> = {
  'left(lift f) = lift(f on the left)': law<Either<number, number>>(([f], [fPlain]) => [
    f.left<number>(),
    lift((e: Either<number, number>) => (e.kind === 'left' ? Either.left(fPlain(e.value)) : e)),
  ]),
  'left(f >>> g) = left f >>> left g': law<Either<number, number>>(([f, g]) => [
    f.andThen(g).left<number>(),
    f.left<number>().andThen(g.left<number>()),
  ]),
  'left f >>> right g = right g >>> left f, for a pure g': law<Either<number, number>>(([f], [, gPlain]) => {
    const g = lift(gPlain).right<number>()
    return [f.left<number>().andThen(g), g.andThen(f.left<number>())]
  }),
  'f ||| g = left f >>> right g >>> either of both': law<Either<number, number>>(([f, g]) => [
    f.choice(g),
    f.left<number>().andThen(g.right<number>()).andThen(id<number>().choice(id<number>())),
  ]),
  'right f = mirror >>> left f >>> mirror': law<Either<number, number>>(([f]) => [
    f.right<number>(),
    lift(sides.mirror).andThen(f.left<number>()).andThen(lift(sides.mirror)),
  ]),
}

type Nested = Either<Either<number, number>, number>
const assocsum = (e: Nested): Either<number, Either<number, number>> => {
  if (e.kind === 'right') return Either.right(Either.right(e.value))
  return e.value.kind === 'left' ? e.value : Either.right(Either.left(e.value.value))
}

const onNestedEithers: Readonly<Record<string, Law>> = {
  'left(left f) >>> assocsum = assocsum >>> left f': law<Nested>(([f]) => [
    f.left<number>().left<number>().andThen(lift(assocsum)),
    lift(assocsum).andThen(f.left<Either<number, number>>()),
  ]),
}

const onLeft: Readonly<Record<string, Law>> = {
  'f >>> left = left >>> left(f)': law<number>(([f]) => [
    f.andThen(lift(sides.left)),
    lift(sides.left).andThen(f.left<number>()),
  ]),
}

const number = fc.integer({ min: -100, max: 100 })
const pair = fc.tuple(number, number)
const eitherOf = (left: fc.Arbitrary<unknown>, right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(left.map(Either.left), right.map(Either.right))
const oneOf = eitherOf(number, number)
const groups: readonly (readonly [Readonly<Record<string, Law>>, fc.Arbitrary<unknown>])[] = [
  [onNumbers, number],
  [onPairs, pair],
  [onNested, fc.tuple(pair, number)],
  [onEithers, oneOf],
  [onNestedEithers, eitherOf(oneOf, number)],
  [onLeft, number],
]

function check(make: Make, hot: boolean, numRuns: number): void {
  for (const [group, inputs] of groups)
    for (const [name, laws_] of Object.entries(group))
      test(name, async () => {
        const params = fc.array(fc.tuple(number, fc.integer({ min: 1, max: 5 })), {
          minLength: 3,
          maxLength: 3,
        })
        await fc.assert(
          fc.asyncProperty(params, inputs, async (numbers, input) => {
            const arrows = numbers.map(([by, times]) => make(by, times)) as [Fn, Fn, Fn]
            const functions = numbers.map(([by, times]) => plain(by, times)) as [
              SerializedArrow,
              SerializedArrow,
              SerializedArrow,
            ]
            const [one, other] = laws_(arrows, functions)
            if (hot)
              for (let run = 0; run < HOT_RUNS + 2; run += 1) {
                await one.run(input as never)
                await other.run(input as never)
              }
            assert.deepEqual(await one.run(input as never), await other.run(input as never))
          }),
          { numRuns },
        )
      })
}

describe('laws of new synchronous arrows', () => check(pure, false, 100))
describe('laws of hot synchronous arrows', () => check(pure, true, 5))
describe('laws of asynchronous arrows', () => check(waiting, false, 50))
describe('laws of hot asynchronous arrows', () => check(waiting, true, 2))
describe('laws of placed arrows', () => check(placed, false, 4))
describe('laws of hot placed arrows', () => check(placed, true, 1))
