/**
 * What the sections of `execute` share: who takes part, under what, how often.
 *
 * Parsed once from the parameters; sections get it complete.
 */
import { type Condition, conditions } from '../../harness/conditions.ts'
import type { Context } from '../../harness/table.ts'

/** The run, as every section needs it. */
export interface Plan {
  readonly context: Context
  /** Pools that take part, Corespun first. */
  readonly pools: readonly string[]
  /** Those that block the calling thread, for calls one after another. */
  readonly blocking: readonly string[]
  readonly conditions: readonly Condition[]
  readonly rounds: number
  readonly sliceMs: number
}

/** Takes part where CORESPUN_BENCH_KNITTING names its folder. */
export const KNITTING = 'knitting'
/** All pools of the table, in the order of its rows. */
export const POOLS: readonly string[] = [
  'corespun',
  'piscina',
  'piscina-no-atomics',
  'piscina-default',
  'tinypool',
  'workerpool',
  'poolifier',
  'multithreading',
  KNITTING,
  'postMessage',
]
const BLOCKING: readonly string[] = ['synckit']

/** Read the plan from the parameters. */
export function planOf(context: Context): Plan {
  const chosen = context.text('contenders')
  const names = context.text('conditions')
  const named = chosen === 'all' ? [...POOLS, ...BLOCKING] : chosen.split(',')
  const skipOnce = once(context.skip)
  const found = conditions(skipOnce).filter(({ name }) => names === 'all' || names.split(',').includes(name))
  return {
    context: { ...context, skip: skipOnce },
    pools: named.filter((name) => !BLOCKING.includes(name)),
    blocking: named.filter((name) => BLOCKING.includes(name)),
    conditions: found,
    rounds: context.number('rounds'),
    sliceMs: context.number('slice-ms'),
  }
}

/** The condition that sections with one condition only are measured under. */
export function mainCondition(plan: Plan): Condition {
  return plan.conditions[0] ?? { name: 'unpinned', spin: true, prefix: [] }
}

function once(skip: Context['skip']): Context['skip'] {
  const reported = new Set<string>()
  return (what, why) => {
    if (!reported.has(what)) skip(what, why)
    reported.add(what)
  }
}
