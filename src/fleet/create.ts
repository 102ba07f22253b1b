/**
 * Makes what the users of a fleet need on the servers, as an operator: then they need not be permitted to.
 *
 * It opens what they open, and the servers make what does not exist. What exists is left as it is,
 * but for queues that accept items that nobody takes.
 */
import type { Fleet } from './connect.ts'
import { largeName, lettersName, limitsName, partsName, queueName, recordsName } from './jobs/record.ts'
import { type FleetUser, checkedUsers } from './server-config.ts'
import { createOptions } from './settings.ts'
import { LOCKS } from './state/held.ts'
import { storeName } from './state/store.ts'

/** How streams are made. */
export interface CreateOptions {
  /** As hosts of these zones have it. Default 10,000. */
  readonly leaseMs?: number
}

/**
 * Make the streams and consumers that users need, with the `replicas` of the connection. Its user may make
 * them, as one with `creates` may. Repeating it is safe.
 * @returns How many streams there are for these users.
 * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_MISMATCH` for a stream that exists otherwise; `FLEET_DENIED`.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { connect, createStreams } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:') // mostly the servers, as an operator
 * assert.equal(await createStreams(fleet, [{ name: 'caller', password: 'c', stores: ['prices'] }]), 1)
 * ```
 */
export async function createStreams(
  fleet: Fleet,
  users: readonly FleetUser[],
  options?: CreateOptions,
): Promise<number> {
  const checked = checkedUsers('createStreams()', users)
  const { leaseMs } = createOptions(options)
  const { engine, payloads } = fleet
  const zones = new Set(checked.flatMap(({ takes, submits }) => [...takes, ...submits]))
  const values = new Map(
    checked.flatMap(({ stores }) => stores.map((one) => [storeName(one.name), one.ttlMs])),
  )
  for (const zone of zones) {
    await (await engine.queue(queueName(zone))).prepare(leaseMs)
    for (const nameOf of [recordsName, lettersName, limitsName, largeName, partsName])
      values.set(nameOf(zone), 0)
  }
  if (checked.some(({ locks }) => locks.length > 0)) values.set(LOCKS, 0)
  for (const [name, ttlMs] of values) await engine.keyValue(name, { ttlMs })
  const hasLarge = checked.some(({ largeValues }) => largeValues)
  if (hasLarge) await payloads.prepare()
  return zones.size + values.size + (hasLarge ? 1 : 0)
}
