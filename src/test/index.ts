/**
 * `corespun/test`: a program under many seeds, each of which decides the order of its tasks, its time, its
 * random numbers, its network and its deaths.
 *
 * `check({ seeds }, async (world) => { ... })` plays it until a seed fails; that seed makes the same run
 * again. docs/guide/test.md has what it finds, and what it cannot.
 * @module corespun/test
 */
export { type Checked, check } from './check.ts'
export { type CheckCodes, CheckError, type CheckFacts } from './errors.ts'
export {
  type History,
  type Model,
  type Operation,
  exactlyOnce,
  linearizable,
  noLostUpdate,
} from './history.ts'
export type { SeededHost, SeededHostOptions } from './hosts.ts'
export type { SeededServeOptions, SeededServer } from './http.ts'
export type { CheckOptions, NetworkFaults } from './options.ts'
export type { SeededSocket, SocketEvent } from './sockets.ts'
export type { Spawned } from './tasks.ts'
export type { World } from './world.ts'
export type { SeededZone, SeededZoneOptions, WorkerDeath } from './zones.ts'
