/**
 * Corespun: TypeScript on every core.
 *
 * The names that most programs need; each part exports the rest from its own path
 * (`corespun/zone`, `corespun/http`).
 * @module corespun
 */
export type { Arrow } from './arrow/index.ts'
export * as arrow from './arrow/index.ts'
export { CorespunError } from './base/index.ts'
export type { Fiber } from './fiber/index.ts'
export * as fiber from './fiber/index.ts'
// Not through http/index.ts: what serves is loaded with the first server.
export { serve } from './http/internal.ts'
export type { Routes } from './http/index.ts'
export { type Store, store } from './store/index.ts'
export { AtomicCounter, Channel, Lock, RwLock, Semaphore } from './sync/index.ts'
export { isTransportable, move, register, transportable } from './transport/internal.ts'
export { type AnyZone, currentTask, type Result, type Task, type Zone, zone } from './zone/index.ts'
