/**
 * Packages of NATS, which are optional peers.
 *
 * They are loaded when they are needed, and one that is missing is one clear sentence.
 */
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'

/** A module of an optional peer. @throws {FleetError} `FLEET_PEER_MISSING`. */
export async function peer<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    throw new FleetError('FLEET_PEER_MISSING', { name, reason: reasonOf(cause) }, { cause })
  }
}
