/**
 * The stages that the zone of the service runs: those of the pipeline, with the cost of each call recorded.
 *
 * A store has one sum per step for all threads, so every worker of the server shows the same costs. A
 * cancelled call is included if it ends within the zone's grace period of one second; after that its worker
 * is terminated, and its cost is not recorded.
 */
import { store } from 'corespun/store'
import * as pipeline from './pipeline.ts'

/** The number of calls of a step and their total time. */
export interface Cost {
  readonly calls: number
  readonly ms: number
}

/** Costs by step. */
export const costs = store.getOrCreate<Cost>('service.costs')

/** Record a call that began at `startMs` of `performance.now()`; returns its duration in ms. */
export function charge(step: string, startMs: number): number {
  const ms = performance.now() - startMs
  costs.update(step, (sum = { calls: 0, ms: 0 }) => ({ calls: sum.calls + 1, ms: sum.ms + ms }))
  return ms
}

/** First stage: the syntax tree, or the position of the first error. */
export function parsed(...input: Parameters<typeof pipeline.parsed>): ReturnType<typeof pipeline.parsed> {
  const startMs = performance.now()
  const tree = pipeline.parsed(...input)
  charge('parsed', startMs)
  return tree
}

/** Second stage: the score. */
export function analyse(...input: Parameters<typeof pipeline.analyse>): pipeline.Score {
  const startMs = performance.now()
  const score = pipeline.analyse(...input)
  charge('analyse', startMs)
  return score
}
