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
import { type Arrow, Either, fst, id, ifThenElse, lift, liftAsync, whileDo } from './index.ts'
import { HOT_RUNS } from './node.ts'

type Fn = Arrow<number, number>
/** How a function with two numbers inside becomes an arrow. */
type Make = (by: number, times: number) => Fn

const pure: Make = (by, times) => lift((x: number) => ((x + by) * times) % 10007)
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

type Law = (f: Fn, g: Fn, h: Fn) => readonly [Arrow<never, unknown>, Arrow<never, unknown>]
type Both = Arrow<never, unknown>

const law =
  <A>(make: (f: Fn, g: Fn, h: Fn) => readonly [Arrow<A, unknown>, Arrow<A, unknown>]): Law =>
  (f, g, h) =>
    make(f, g, h) as unknown as readonly [Both, Both]

const double = (x: number): number => x * 2
const assoc = ([[a, b], c]: readonly [readonly [number, number], number]): readonly [
  number,
  readonly [number, number],
] => [a, [b, c]]

const onNumbers: Readonly<Record<string, Law>> = {
  'id >>> f = f': law((f) => [id<number>().andThen(f), f]),
  'f >>> id = f': law((f) => [f.andThen(id()), f]),
  '(f >>> g) >>> h = f >>> (g >>> h)': law((f, g, h) => [f.andThen(g).andThen(h), f.andThen(g.andThen(h))]),
  'lift(g after f) = lift(f) >>> lift(g)': law(() => [
    lift((x: number) => double(double(x))),
    lift(double).andThen(lift(double)),
  ]),
  'compose is andThen the other way round': law((f, g) => [f.compose(g), g.andThen(f)]),
  'while unrolls': law((f) => {
    const below = lift((x: number) => x < 5000 && x > 0)
    const body = f.map((x) => x + 1000)
    const loop = whileDo(below, body)
    return [loop, ifThenElse(below, body.andThen(loop), id<number>())]
  }),
}

const onPairs: Readonly<Record<string, Law>> = {
  'first(lift f) = lift(f x id)': law<readonly [number, number]>(() => [
    lift(double).first<number>(),
    lift(([a, b]: readonly [number, number]) => [double(a), b]),
  ]),
  'first(f >>> g) = first f >>> first g': law<readonly [number, number]>((f, g) => [
    f.andThen(g).first<number>(),
    f.first<number>().andThen(g.first<number>()),
  ]),
  'first f >>> (id *** g) = (id *** g) >>> first f, for a pure g': law<readonly [number, number]>((f) => {
    const g = id<number>().split(lift(double))
    return [f.first<number>().andThen(g), g.andThen(f.first<number>())]
  }),
  'first f >>> fst = fst >>> f': law<readonly [number, number]>((f) => [
    f.first<number>().andThen(fst<number, number>()),
    fst<number, number>().andThen(f),
  ]),
}

const onNested: Readonly<Record<string, Law>> = {
  'first(first f) >>> assoc = assoc >>> first f': law<readonly [readonly [number, number], number]>((f) => [
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
  'left(lift f) = lift(f on the left)': law<Either<number, number>>(() => [
    lift(double).left<number>(),
    lift((e: Either<number, number>) => (e.kind === 'left' ? Either.left(double(e.value)) : e)),
  ]),
  'left(f >>> g) = left f >>> left g': law<Either<number, number>>((f, g) => [
    f.andThen(g).left<number>(),
    f.left<number>().andThen(g.left<number>()),
  ]),
  'left f >>> right g = right g >>> left f, for a pure g': law<Either<number, number>>((f) => {
    const g = lift(double).right<number>()
    return [f.left<number>().andThen(g), g.andThen(f.left<number>())]
  }),
  'f ||| g = left f >>> right g >>> either of both': law<Either<number, number>>((f, g) => [
    f.choice(g),
    f.left<number>().andThen(g.right<number>()).andThen(id<number>().choice(id<number>())),
  ]),
  'right f = mirror >>> left f >>> mirror': law<Either<number, number>>((f) => [
    f.right<number>(),
    lift(sides.mirror).andThen(f.left<number>()).andThen(lift(sides.mirror)),
  ]),
}

const onLeft: Readonly<Record<string, Law>> = {
  'f >>> left = left >>> left(f)': law<number>((f) => [
    f.andThen(lift(sides.left)),
    lift(sides.left).andThen(f.left<number>()),
  ]),
}

const number = fc.integer({ min: -100, max: 100 })
const pair = fc.tuple(number, number)
const oneOf = fc.tuple(fc.boolean(), number).map(([isLeft, x]) => (isLeft ? Either.left(x) : Either.right(x)))
const groups: readonly (readonly [Readonly<Record<string, Law>>, fc.Arbitrary<unknown>])[] = [
  [onNumbers, number],
  [onPairs, pair],
  [onNested, fc.tuple(pair, number)],
  [onEithers, oneOf],
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
            const [f, g, h] = numbers.map(([by, times]) => make(by, times)) as [Fn, Fn, Fn]
            const [one, other] = laws_(f, g, h)
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
