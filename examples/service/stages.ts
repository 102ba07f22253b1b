/**
 * The stages as the zone of the service runs them: those of the pipeline, and what each call cost.
 *
 * Costs lie in a store for all threads, one sum for each step, so every worker of the server shows the same
 * ones, whoever ran the task. A call whose caller gave up is among them when it ended within the zone's grace
 * of a second; behind that its worker is ended, and what it cost is in none.
 */
import { store } from 'corespun/store'
import * as pipeline from './pipeline.ts'

/** What the calls of a step have cost together. */
export interface Cost {
  readonly calls: number
  readonly ms: number
}

/** Costs by step. */
export const costs = store.getOrCreate<Cost>('service.costs')

/** Add a call that began at `startMs` of `performance.now()`; returns what it took, in ms. */
export function charge(step: string, startMs: number): number {
  const ms = performance.now() - startMs
  costs.update(step, (sum = { calls: 0, ms: 0 }) => ({ calls: sum.calls + 1, ms: sum.ms + ms }))
  return ms
}

/** First stage: the text as a tree, or where it is none. */
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
