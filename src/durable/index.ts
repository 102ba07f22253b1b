/**
 * `corespun/durable`: work of many steps that continues, after a crash, at the step it had reached.
 *
 * `durable(name, function* (input) { ... })` defines runs, in which `step()`, `pause()` and `signal()` are
 * recorded; `runs(fleet, { definitions })` runs them on any engine of a fleet: `sqlite:` is a file,
 * `postgres:` and `nats:` are servers, `memory:` is for tests. docs/guide/durable.md has what it promises.
 * The examples have `await using`, which needs Node 24 or a compiler; elsewhere call `close()`.
 * @module corespun/durable
 */
export { type Durable, durable } from './definition.ts'
export { RunError, type RunCodes, type RunFacts } from './errors.ts'
export { type StartOptions, child } from './child.ts'
export {
  type Duration,
  type StepInfo,
  type StepOptions,
  branch,
  checkpoint,
  expose,
  id,
  now,
  patched,
  pause,
  random,
  signal,
  step,
} from './operations.ts'
export type { Run } from './run.ts'
export type { RunInfo, RunState, RunStep } from './state.ts'
export type { RunStatus } from './records.ts'
export { type RunPage, type Runs, type RunsOptions, runs } from './runs.ts'
