/**
 * Looking into a running process: `observe()` opens the socket that `corespun top` and `stacks` ask;
 * `dashboard()` is a page for a server.
 *
 * An entry point of its own, which nothing else imports: a process that nobody looks into loads none of it.
 * @module corespun/observe
 */
export { dashboard, type DashboardOptions } from './dashboard/dashboard.ts'
export { ObserveError, type ObserveCodes } from './errors.ts'
export type { ObservedFleet } from './figures/fleets.ts'
export type { ObservedRuns } from './figures/runs.ts'
export { type ControlAction, type Observation, type ObserveOptions, observe } from './observe.ts'
