/**
 * `corespun/napa`: the API of napajs on the zones, stores and locks of Corespun.
 *
 * A program for napajs imports this in place of `napajs`; docs/guide/from-napajs.md has what differs. In each
 * thread that loads it the API is also the global `napa`, as there.
 * @module corespun/napa
 */
import { log } from './log.ts'
import * as memory from './memory.ts'
import * as metric from './metric.ts'
import * as runtime from './runtime.ts'
import * as store from './store.ts'
import * as sync from './sync.ts'
import * as transport from './transport.ts'
import * as zone from './zone.ts'

export type { Log, LogFunction } from './log.ts'
export { log, memory, metric, runtime, store, sync, transport, zone }

/**
 * The names of this module as one object, which is also the global `napa`.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import napa from 'corespun/napa'
 *
 * const zone1 = napa.zone.create('zone1', { workers: 1 })
 * const result = await zone1.execute(() => napa.zone.current.id)
 * assert.equal(result.value, 'zone1')
 * ```
 */
const napa = { log, memory, metric, runtime, store, sync, transport, zone }

export default napa

Object.assign(globalThis, { napa })
