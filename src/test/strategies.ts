/**
 * Who goes on next: what finds races that a program's usual order never shows.
 *
 * - `random`: each of the ready, equally likely.
 * - `pct`: tasks have random priorities, the highest goes on, and at `depth - 1` random steps the one that
 *   runs becomes the lowest (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of
 *   Finding Bugs", 2010). Of n tasks and k steps, a bug that needs d orderings is found by one seed with a
 *   probability of at least 1 / (n * k^(d - 1)).
 * - `rounds`: a task goes on until it waits for others; it is pre-empted at a few random steps.
 *
 * A strategy takes its chances from numbers of its own, so those of the program stay when it is replaced.
 */
import { generator } from '../base/index.ts'
import { type Actor, CLOCK, type Deviation, type Entry, type Strategy } from './play.ts'

export type StrategyName = 'random' | 'pct' | 'rounds'
export const STRATEGIES: readonly StrategyName[] = ['random', 'pct', 'rounds']

export interface StrategySettings {
  /** Orderings that a bug needs, for `pct`. */
  readonly depth: number
  /** For `rounds`. */
  readonly preemptionsMax: number
  /** How likely time passes although tasks are ready. */
  readonly stall: number
}

/** @param steps How many steps the program makes, about. */
export function strategyOf(
  name: StrategyName,
  seed: number,
  steps: number,
  settings: StrategySettings,
): Strategy {
  const random = generator(Math.imul(seed, 0x85ebca6b))
  const below = (count: number): number => Math.floor(random() * count)
  const choose = { random: uniform, pct, rounds }[name](below, random, steps, settings)
  const { stall } = settings
  return (choice) => (choice.hasTimers && stall > 0 && random() < stall ? CLOCK : choose(choice))
}

/** The order without any choice. */
export const plain: Strategy = (choice) => choice.plain

/** The plain order but for `deviations`; one whose wait is not ready then is left out. */
export function replaying(deviations: readonly Deviation[]): Strategy {
  const at = new Map(deviations)
  return ({ ready, plain, hasTimers, step }) => {
    const key = at.get(step)
    if (key === undefined) return plain
    if (key === 'clock') return hasTimers ? CLOCK : plain
    const index = ready.findIndex((entry) => entry.key === key)
    return index < 0 ? plain : index
  }
}

type Maker = (
  below: (count: number) => number,
  random: () => number,
  steps: number,
  settings: StrategySettings,
) => Strategy

const uniform: Maker =
  (below) =>
  ({ ready }) =>
    below(ready.length)

const pct: Maker = (below, random, steps, { depth }) => {
  const priorities = new Map<Actor, number>()
  const changes = Array.from({ length: depth - 1 }, () => 1 + below(steps))
  const priorityOf = (actor: Actor): number => {
    let priority = priorities.get(actor)
    if (priority === undefined) priorities.set(actor, (priority = depth + random()))
    return priority
  }
  const highest = (ready: readonly Entry[]): number => {
    let best = 0
    for (let index = 1; index < ready.length; index++)
      if (priorityOf(ready[index].actor) > priorityOf(ready[best].actor)) best = index
    return best
  }
  return ({ ready, step }) => {
    // A step without a choice passes a change on to the next that has one.
    for (let at = changes.findIndex((change) => change <= step); at >= 0;) {
      priorities.set(ready[highest(ready)].actor, changes.length - 1 - depth)
      changes.splice(at, 1)
      at = changes.findIndex((change) => change <= step)
    }
    return highest(ready)
  }
}

const rounds: Maker = (below, _random, steps, { preemptionsMax }) => {
  const at = Array.from({ length: preemptionsMax }, () => 1 + below(steps))
  return ({ ready, plain, step }) => {
    const due = at.findIndex((each) => each <= step)
    if (due < 0 || ready.length === 1) return plain
    at.splice(due, 1)
    const other = below(ready.length - 1)
    return other >= plain ? other + 1 : other
  }
}
