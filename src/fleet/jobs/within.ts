/**
 * A job that is submitted within a transaction of a caller, whose database has the engine's tables.
 *
 * It is written by the caller's own client, so it is there exactly when the caller's own rows are.
 */
import type { Queue, Rank } from '../engine/engine.ts'
import { wrong } from '../errors.ts'
import type { SqlClient } from '../job-settings.ts'

/**
 * @param scheme Of the engine, to name one that has no such transactions.
 * @returns Whether it was added; false if its key waits or runs.
 * @throws {FleetError} `FLEET_ARGUMENT`. What the client throws.
 */
export async function addedWithin(
  queue: Queue,
  client: SqlClient,
  [key, bytes, rank]: readonly [key: string, bytes: Uint8Array, rank: Rank],
  scheme: string,
): Promise<boolean> {
  const add = queue.addWithin?.(client, key, bytes, rank)
  if (add === undefined)
    throw wrong(
      'jobs.submit(): client',
      `left out over ${scheme}:, which is not in the database of a client; connect to postgres://`,
      'a client',
    )
  return add
}
