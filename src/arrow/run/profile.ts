/**
 * What the tiers keep about a node: its plans, how often it has run, and the times of its stages.
 *
 * A node that has never run on the interpreter or been measured has no profile.
 */
import { HOT_RUNS, type ArrowNode } from '../build/node.ts'
import { noteHot } from './hot.ts'
import { Do, buildPlan, type Grain, type Plan } from './plan.ts'

export interface Measure {
  calls: number
  ms: number
}

export interface Profile {
  plain: Plan | undefined
  fused: Plan | undefined
  /** The fused plan when it is a single call. */
  whole: ((input: unknown) => unknown) | undefined
  measured: Plan | undefined
  /**
   * Interpreted runs, measured ones included. Of small synchronous nodes: the runs that were counted before
   * the fuel was reset.
   */
  runs: number
  measuredRuns: number
  /** Weak: runs also measure the arrows that `flatMap` and `catchAll` make while they run. */
  measures: WeakMap<ArrowNode, Measure>
}

/** The profile of a node, made when it is first asked for. */
export function profileOf(node: ArrowNode): Profile {
  return (node.profile ??= {
    plain: undefined,
    fused: undefined,
    whole: undefined,
    measured: undefined,
    runs: 0,
    measuredRuns: 0,
    measures: new WeakMap<ArrowNode, Measure>(),
  } satisfies Profile) as Profile
}

export function measureOf(profile: Profile, node: ArrowNode): Measure {
  let measure = profile.measures.get(node)
  if (measure === undefined) profile.measures.set(node, (measure = { calls: 0, ms: 0 }))
  return measure
}

export function planOf(node: ArrowNode, grain: Grain): Plan {
  const profile = profileOf(node)
  if (grain === 'measured') return (profile.measured ??= buildPlan(node, grain))
  if (profile.fused !== undefined) return profile.fused
  if (profile.runs < HOT_RUNS) return (profile.plain ??= buildPlan(node, 'plain'))
  profile.plain = undefined
  profile.fused = buildPlan(node, 'fused')
  noteHot(node)
  const [first, second] = profile.fused.instructions
  if (first?.code === Do.call && second?.code === Do.end)
    profile.whole = first.part as (input: unknown) => unknown
  return profile.fused
}
