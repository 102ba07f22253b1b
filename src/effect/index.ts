/**
 * `corespun/effect`: zones, stores, durable runs and the server for programs that are written with Effect 4.
 *
 * The only entry point that needs `effect`, an optional peer. It converts at the border and has no engine of
 * its own: tasks, interruption, spans and transactions are those of the other modules. Each resource is a
 * scoped Effect, which `Layer.effect(Key, makeZone(...))` makes a service.
 * @module corespun/effect
 */
// oxlint-disable-next-line import/no-unassigned-import -- registers Effect's data types
import './classes.ts'

export { fromArrow, toArrow } from './arrows.ts'
export { type Failures, CorespunFailure, TaskError } from './errors.ts'
export { carryReference } from './carried.ts'
export { type EffectRuns, makeFleet, makeRuns, toStep } from './runs.ts'
export { handler, makeServer } from './server.ts'
export { type EffectStore, atomically, fromStore, makeStore } from './stores.ts'
export {
  type Called,
  type EffectCalls,
  type EffectZone,
  type NotInWorker,
  fromZone,
  makeZone,
} from './zones.ts'
