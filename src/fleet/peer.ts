/**
 * Packages that are optional peers: those of NATS, and the one for schedules of cron.
 *
 * They are loaded when they are needed, and one that is missing is one clear sentence.
 */
import { reasonOf } from '../base/index.ts'
import { FleetError } from './errors.ts'

/** A module of an optional peer. @param use What needs it. @throws {FleetError} `FLEET_PEER_MISSING`. */
export async function peer<Module>(
  name: string,
  load: () => Promise<Module>,
  use = 'connect(): nats://',
): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    throw new FleetError('FLEET_PEER_MISSING', { name, use, reason: reasonOf(cause) }, { cause })
  }
}
