/**
 * A job that is submitted within a transaction of a caller, whose database has the engine's tables.
 *
 * It is written by the caller's own client, and so are large arguments: they are there exactly when the
 * caller's own rows are.
 */
import type { Queue, Rank } from '../engine/engine.ts'
import { wrong } from '../errors.ts'
import type { SqlClient } from '../job-settings.ts'
import type { Large } from './large.ts'

/** Who adds. */
interface Within {
  readonly queue: Queue
  readonly client: SqlClient
  /** Of the engine, to name one that has no such transactions. */
  readonly scheme: string
  readonly large: Large
}

/**
 * @param reference Of its arguments, where they are large.
 * @returns Whether it was added; false if its key waits or runs.
 * @throws {FleetError} `FLEET_ARGUMENT`. What the client throws.
 */
export async function addedWithin(
  { queue, client, scheme, large }: Within,
  [key, bytes, rank]: readonly [key: string, bytes: Uint8Array, rank: Rank],
  reference: string | undefined,
  args: Uint8Array,
): Promise<boolean> {
  // Before anything is written, which is not repeated.
  if (reference !== undefined) await large.ready()
  const add = queue.addWithin?.(client, key, bytes, rank)
  if (add === undefined)
    throw wrong(
      'jobs.submit(): client',
      `left out over ${scheme}:, which is not in the database of a client; connect to postgres://`,
      'a client',
    )
  const isAdded = await add
  if (isAdded && reference !== undefined) await large.putWithin(client, reference, key, args)
  return isAdded
}
