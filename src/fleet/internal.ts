/**
 * What durable runs and the journal of `corespun run` need of a fleet that its users do not: its engines, and
 * how what they keep is written.
 *
 * For the other folders of this package; not part of its API.
 */
import type { Engine } from './engine/engine.ts'
import { VALUE_BYTES_MAX } from './settings.ts'

export type { Fleet } from './connect.ts'
export { certainly, opened } from './certainly.ts'
export type { Faults, Simulation } from './engine/memory/simulation.ts'
export type { JobOutcome, JobTask } from './jobs/attempt.ts'
export type { Clock, End, Engine, Entry, KeyValue, Lease, Queue, Rank, Waiting } from './engine/engine.ts'
export { RANK_OF } from './jobs/record.ts'
export { Limiter, type Refused } from './jobs/limiter.ts'
export type { JobLimit } from './jobs/limit-state.ts'
export { runsQueueName } from './overview.ts'
export { hasCode, isDone, mayPass, unlessConflict } from './errors.ts'
export { checkKey } from './settings.ts'
export { CurrentJob, asJob } from './worker/current.ts'
export { NonRetryableError } from './worker/non-retryable.ts'
export { errorFrame } from './worker/task.ts'

/** The engine in a file, which is loaded with the first one. */
export const sqliteEngine = async (file: string): Promise<Engine> =>
  (await import('./engine/sqlite/sqlite.ts')).sqliteEngine(file)

/** The network of simulations, connections over it, and what takes jobs; loaded with the first one. */
export const simulated = async () => {
  const { Fleet } = await import('./connect.ts')
  const { Simulation } = await import('./engine/memory/simulation.ts')
  const { JobTaker } = await import('./jobs/taker.ts')
  const { FleetError } = await import('./errors.ts')
  const fleetOver = (engine: Engine) => new Fleet(engine, VALUE_BYTES_MAX)
  return { fleetOver, FleetError, JobTaker, Simulation }
}
