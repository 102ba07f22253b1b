/**
 * Looking into a running process: `observe()` opens the socket that `corespun stacks` asks.
 *
 * An entry point of its own, which nothing else imports: a process that nobody looks into loads none of it.
 * @module corespun/observe
 */
export { ObserveError, type ObserveCodes } from './errors.ts'
export { type ControlAction, type Observation, type ObserveOptions, observe } from './observe.ts'
