/**
 * Arrows for tests, each beside what it should do: a naive function from a value to an outcome.
 *
 * The oracle has no graphs, tiers or interpreters: it is plain recursion over closures, with
 * promises nowhere and failures as values. Left out is what it would need a clock or another thread for: a
 * timeout that strikes, schedules with delays, interruption (arrow.test.ts, fork.test.ts), `stream`, which
 * returns an iterable, and `on` a zone of workers, where stages may not capture what they are made with
 * (hop.test.ts).
 */
import fc from 'fast-check'
import { Schedule, fail as failing } from '../fiber/index.ts'
import { store } from '../store/index.ts'
import { zone } from '../zone/index.ts'
import {
  type Arrow,
  type Either,
  dup,
  effect,
  fail,
  fromFiber,
  getFirst,
  id,
  ifNotThen,
  ifThen,
  ifThenElse,
  lift,
  liftAsync,
  getSecond,
  succeed,
  swap,
  test,
  whileDo,
} from './index.ts'

/** What became of a run. */
export type Outcome =
  | { readonly kind: 'success'; readonly value: unknown }
  | { readonly kind: 'failure'; readonly error: unknown }
  | { readonly kind: 'defect'; readonly defect: unknown }

/** An arrow and what it should do. */
export interface Modelled {
  readonly arrow: Arrow<number, number, unknown>
  readonly model: (input: number) => Outcome
  readonly text: string
}

/** One step of making a modelled arrow of others. */
type Recipe =
  | { readonly op: 'leaf'; readonly which: number; readonly by: number }
  | { readonly op: 'one'; readonly which: number; readonly of: Recipe; readonly by: number }
  | { readonly op: 'two'; readonly which: number; readonly of: Recipe; readonly and: Recipe }

const success = (value: unknown): Outcome => ({ kind: 'success', value })

function then(outcome: Outcome, next: (value: number) => Outcome): Outcome {
  return outcome.kind === 'success' ? next(outcome.value as number) : outcome
}

const guarded =
  (fn: (x: number) => unknown) =>
  (x: number): Outcome => {
    try {
      return success(fn(x))
    } catch (defect) {
      return { kind: 'defect', defect }
    }
  }

/** Stages that never leave small integers, so all sums are exact. */
function leaf(which: number, by: number): Modelled {
  const add = (x: number): number => (x + by) % 1009
  const odd = (x: number): number => {
    if (x % 7 === 3) throw `odd ${x}`
    return x - by
  }
  const leaves: readonly Modelled[] = [
    { arrow: lift(add), model: guarded(add), text: `add ${by}` },
    { arrow: id<number>(), model: success, text: 'id' },
    { arrow: succeed(by), model: () => success(by), text: `succeed ${by}` },
    { arrow: fail(`failed ${by}`), model: () => ({ kind: 'failure', error: `failed ${by}` }), text: 'fail' },
    { arrow: lift(odd), model: guarded(odd), text: 'odd' },
    {
      arrow: effect(odd, (thrown) => `caught ${String(thrown)}`),
      model: (x) => {
        const outcome = guarded(odd)(x)
        return outcome.kind === 'defect'
          ? { kind: 'failure', error: `caught ${String(outcome.defect)}` }
          : outcome
      },
      text: 'effect',
    },
    by % 2 === 0
      ? { arrow: liftAsync(async (x: number) => add(x)), model: guarded(add), text: `async ${by}` }
      : fiber(by),
    { arrow: lift((x: number) => -x), model: (x) => success(-x), text: 'negate' },
    flaky(by),
  ]
  return leaves[which % leaves.length]
}

/** A fiber that fails now and then. */
function fiber(by: number): Modelled {
  const body = function* (x: number): Generator<unknown, number, never> {
    if (x % 5 === 2) yield* failing(`fiber ${x}`)
    return x + by
  }
  return {
    arrow: fromFiber(body),
    model: (x) => (x % 5 === 2 ? { kind: 'failure', error: `fiber ${x}` } : success(x + by)),
    text: `fiber ${by}`,
  }
}

/**
 * A stage that fails at some of its calls, whatever its input. Its model counts its own: the failures differ
 * as soon as one of both was called more often than the other.
 */
function flaky(by: number): Modelled {
  const failures = (): ((x: number) => Outcome) => {
    let calls = by
    return (x) => {
      calls += 1
      return [1, 2, 5].includes(calls % 8) ? { kind: 'failure', error: `call ${calls}` } : success(x + by)
    }
  }
  const outcome = failures()
  const body = (x: number): number => {
    const ended = outcome(x)
    if (ended.kind === 'failure') throw ended.error
    return x + by
  }
  return { arrow: effect(body, String), model: failures(), text: `flaky ${by}` }
}

const sum = (one: number, other: number): number => (one * 3 + other) % 1013
const pairSum = lift(([one, other]: readonly [number, number]) => sum(one, other))
const positive = lift((x: number) => x > 0)

function ofOne({ arrow, model, text }: Modelled, which: number, by: number): Modelled {
  const pair = dup<number>()
  const kind = which % 23
  if (kind > 18) return ofWait({ arrow, model, text }, kind, by)
  if (kind > 14) return ofValue({ arrow, model, text }, kind, by)
  switch (kind) {
    case 0:
      return { arrow: arrow.named(`n${by}`), model, text: `named(${text})` }
    case 1:
      return {
        arrow: arrow.mapError((e) => `m${String(e)}`),
        model: mapped(model),
        text: `mapError(${text})`,
      }
    case 2:
      return {
        arrow: pair.andThen(arrow.first<number>()).andThen(pairSum),
        model: (x) => then(model(x), (y) => success(sum(y, x))),
        text: `first(${text})`,
      }
    case 3:
      return {
        arrow: pair.andThen(arrow.second<number>()).andThen(swap<number, number>()).andThen(pairSum),
        model: (x) => then(model(x), (y) => success(sum(y, x))),
        text: `second(${text})`,
      }
    case 4:
      return {
        arrow: arrow.keepInput(),
        model: (x) => then(model(x), () => success(x)),
        text: `keepInput(${text})`,
      }
    case 5:
    case 6:
    case 7:
    case 8:
      return ofChoice({ arrow, model, text }, kind)
    case 11:
    case 12:
    case 13:
    case 14:
      return ofIdentity({ arrow, model, text }, kind)
    case 9: {
      const below = lift(([count]: readonly [number, number]) => count < by)
      const body = lift((x: number) => x + 1).split(arrow)
      const loop = dup<number>()
        .andThen(succeed(0).split(id<number>()))
        .andThen(
          whileDo(below, body as unknown as Arrow<readonly [number, number], readonly [number, number]>),
        )
      return {
        arrow: loop.andThen(getSecond<number, number>()),
        model: looped(model, by),
        text: `while ${by} (${text})`,
      }
    }
    default:
      return {
        arrow: arrow.map((x) => x + by).tap(() => by),
        model: (x) => then(model(x), (y) => success(y + by)),
        text: `map(${text})`,
      }
  }
}

function ofChoice({ arrow, model, text }: Modelled, which: number): Modelled {
  switch (which) {
    case 5:
      return {
        arrow: arrow.catchAll((e) => lift((x: number) => x + String(e).length)),
        model: (x) => {
          const outcome = model(x)
          return outcome.kind === 'failure' ? success(x + String(outcome.error).length) : outcome
        },
        text: `catchAll(${text})`,
      }
    case 6:
      return {
        arrow: arrow.flatMap((y) => lift((x: number) => sum(x, y))),
        model: (x) => then(model(x), (y) => success(sum(x, y))),
        text: `flatMap(${text})`,
      }
    case 7:
      return {
        arrow: test(positive)
          .andThen(arrow.left<number>())
          .andThen(id<number>().choice(lift((x: number) => x - 1))),
        model: (x) => (x > 0 ? model(x) : success(x - 1)),
        text: `left(${text})`,
      }
    default:
      return {
        arrow: test(positive)
          .andThen(arrow.right<number>())
          .andThen(lift((x: number) => x + 1).choice(id<number>())),
        model: (x) => (x > 0 ? success(x + 1) : model(x)),
        text: `right(${text})`,
      }
  }
}

interface Marked {
  readonly kind: 'left' | 'right'
  readonly value: number
  readonly mark: number
}

/** Sees whether what passes a stage is passed on itself, with all that it has, and when a pair is read. */
function ofIdentity({ arrow, model, text }: Modelled, which: number): Modelled {
  const marked = lift((x: number): Marked => ({
    kind: x > 0 ? 'left' : 'right',
    value: x,
    mark: (x - 2) % 1009,
  })) as unknown as Arrow<number, Either<number, number>>
  const markOf = (one: Either<number, number>): number => (one as Marked).mark
  const isSame = <T>([one, other]: readonly [T, T]): boolean => one === other
  switch (which) {
    case 11: {
      const twice = dup<number>().andThen(arrow.first<number>()).andThen(dup<readonly [number, number]>())
      return {
        arrow: twice.map((two) => (isSame(two) ? sum(...two[0]) : Number.NaN)),
        model: (x) => then(model(x), (y) => success(sum(y, x))),
        text: `dup(first(${text}))`,
      }
    }
    case 12:
      return {
        arrow: marked.andThen(arrow.left<number>()).map((e) => (e.kind === 'left' ? e.value : markOf(e))),
        model: (x) => (x > 0 ? model(x) : success((x - 2) % 1009)),
        text: `marked(left(${text}))`,
      }
    case 13:
      return {
        arrow: marked
          .andThen(arrow.right<number>())
          .andThen(dup<Either<number, number>>())
          .map((two) => (!isSame(two) ? Number.NaN : two[0].kind === 'left' ? markOf(two[0]) : two[0].value)),
        model: (x) => (x > 0 ? success((x - 2) % 1009) : model(x)),
        text: `dup(marked(right(${text})))`,
      }
    default: {
      const selfish = lift((x: number) => {
        const pair: unknown[] = [0, x]
        pair[0] = pair
        return pair as unknown as readonly [number[], number]
      })
      const spoil = lift((pair: number[]) => pair.splice(1, 1, Number.NaN)[0]).andThen(arrow)
      const both = text.length % 2 === 0 ? spoil.first<number>() : spoil.split(id<number>())
      return {
        arrow: selfish.andThen(both).andThen(pairSum),
        model: (x) => then(model(x), (y) => success(sum(y, x))),
        text: `spoiled(${text})`,
      }
    }
  }
}

function ofValue({ arrow, model, text }: Modelled, which: number, by: number): Modelled {
  const always = (x: number): Outcome => then(model(x), () => success(by))
  switch (which) {
    case 15:
      return { arrow: arrow.as(by), model: always, text: `as(${text})` }
    case 16:
      return {
        arrow: arrow.unit().map((nothing) => (nothing === undefined ? by : Number.NaN)),
        model: always,
        text: `unit(${text})`,
      }
    case 17:
      return {
        arrow: ifThen(positive, arrow),
        model: (x) => (x > 0 ? model(x) : success(x)),
        text: `ifThen(${text})`,
      }
    default:
      return {
        arrow: ifNotThen(positive, arrow),
        model: (x) => (x > 0 ? success(x) : model(x)),
        text: `ifNotThen(${text})`,
      }
  }
}

const kept = store.create<number>('arrow-oracle')
let keptCount = 0

/** To be called when all tests have ended. */
export function closeOracle(): void {
  kept.close()
}

/** Stages with an arrow inside; those that retry or cache count their calls. */
function ofWait({ arrow, model, text }: Modelled, which: number, by: number): Modelled {
  if (which === 19) return { arrow: arrow.timeout(2 ** 31 - 1), model, text: `timeout(${text})` }
  if (which === 20) return { arrow: arrow.on(zone.node), model, text: `on(${text})` }
  const last = flaky(by)
  const inner = arrow.andThen(last.arrow)
  const once = (x: number): Outcome => then(model(x), last.model)
  if (which === 21)
    return {
      arrow: inner.retry(Schedule.recurs(by % 3)),
      model: (x) => {
        let outcome = once(x)
        for (let left = by % 3; left > 0 && outcome.kind === 'failure'; left -= 1) outcome = once(x)
        return outcome
      },
      text: `retry ${by % 3} (${text} >>> ${last.text})`,
    }
  const name = (keptCount += 1)
  const known = new Map<number, Outcome>()
  return {
    arrow: inner.through(kept, (x) => `${name} ${x}`),
    model: (x) => {
      const outcome = known.get(x) ?? once(x)
      if (outcome.kind === 'success') known.set(x, outcome)
      return outcome
    },
    text: `through(${text} >>> ${last.text})`,
  }
}

function mapped(model: Modelled['model']): Modelled['model'] {
  return (x) => {
    const outcome = model(x)
    return outcome.kind === 'failure' ? { kind: 'failure', error: `m${String(outcome.error)}` } : outcome
  }
}

function looped(model: Modelled['model'], times: number): Modelled['model'] {
  return (x) => {
    let outcome: Outcome = success(x)
    for (let count = 0; count < times; count += 1) outcome = then(outcome, model)
    return outcome
  }
}

function ofTwo(one: Modelled, two: Modelled, which: number): Modelled {
  const both = (x: number): Outcome =>
    then(one.model(x), (y) => then(two.model(x), (z) => success(sum(y, z))))
  switch (which % 6) {
    case 0:
      return {
        arrow: one.arrow.andThen(two.arrow),
        model: (x) => then(one.model(x), two.model),
        text: `${one.text} >>> ${two.text}`,
      }
    case 1:
      return {
        arrow: two.arrow.compose(one.arrow),
        model: (x) => then(one.model(x), two.model),
        text: `(${two.text} <<< ${one.text})`,
      }
    case 2:
      return { arrow: one.arrow.zipWith(two.arrow, sum), model: both, text: `zip(${one.text}, ${two.text})` }
    case 3:
      return {
        arrow: one.arrow.merge(two.arrow).andThen(pairSum),
        model: both,
        text: `(${one.text} &&& ${two.text})`,
      }
    case 4:
      return {
        arrow: dup<number>().andThen(one.arrow.split(two.arrow)).andThen(getFirst<number, number>()),
        model: (x) => then(one.model(x), (y) => then(two.model(x), () => success(y))),
        text: `(${one.text} *** ${two.text})`,
      }
    default:
      return {
        arrow: ifThenElse(positive, one.arrow, two.arrow),
        model: (x) => (x > 0 ? one.model(x) : two.model(x)),
        text: `if(${one.text}, ${two.text})`,
      }
  }
}

/** A new arrow of a recipe, and its model. */
export function cook(recipe: Recipe): Modelled {
  switch (recipe.op) {
    case 'leaf':
      return leaf(recipe.which, recipe.by)
    case 'one':
      return ofOne(cook(recipe.of), recipe.which, recipe.by)
    default:
      return ofTwo(cook(recipe.of), cook(recipe.and), recipe.which)
  }
}

const which = fc.nat({ max: 1000 })
const by = fc.integer({ min: 0, max: 5 })

/** Recipes of arrows of some dozen nodes. */
export const recipes: fc.Arbitrary<Recipe> = fc.letrec<{ recipe: Recipe }>((tie) => ({
  recipe: fc.oneof(
    { maxDepth: 6 },
    fc.record({ op: fc.constant('leaf' as const), which, by }),
    fc.record({ op: fc.constant('one' as const), which, of: tie('recipe'), by }),
    fc.record({ op: fc.constant('two' as const), which, of: tie('recipe'), and: tie('recipe') }),
    fc.record({ op: fc.constant('two' as const), which, of: tie('recipe'), and: tie('recipe') }),
  ),
})).recipe
