/**
 * The type of every zone: of workers, ready-made or created, and of the calling thread itself.
 *
 * Code that is given a place to run things takes an `AnyZone`. The classes say more: a `Zone` has settings,
 * and can be full; `zone.node` has neither a queue nor a hop.
 */
import type { Zone } from './zone.ts'

/**
 * What a `Zone` has, but for what only workers have; each method is described there.
 */
export type AnyZone = Omit<Zone, 'settings' | 'begin' | 'onError'>
