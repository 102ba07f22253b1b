/**
 * What a job that has not ended in time waits for: hosts, or an attempt that does not fail.
 *
 * It is asked when the time of `result()` is over, so it is found out soon or not at all.
 */
import { oneLine, reasonOf } from '../../base/index.ts'
import type { Engine, KeyValue } from '../engine/engine.ts'
import { hostsOf } from '../presence.ts'
import { thrownBy } from './frames.ts'
import { queueName, readRecord } from './record.ts'

const SOON_MS = 100
const REASON_CHARS = 500
/** A host that takes jobs has one that waits sooner. */
const UNTAKEN_MS = 250

/** `undefined`: nothing that is found out soon. Never rejects. */
export async function delayOf(
  engine: Engine,
  zone: string,
  open: () => Promise<{ readonly records: KeyValue }>,
  key: string,
): Promise<string | undefined> {
  const soon = new Promise<undefined>((resolve) => void engine.clock.after(SOON_MS, () => resolve(undefined)))
  const failed = open()
    .then(({ records }) => records.get(key))
    .then((entry) => thrownBy(readRecord(entry?.bytes)?.errors.at(-1)))
    .catch(() => undefined)
  const asked = isHosted(engine, zone, soon).catch(() => undefined)
  const [error, hasHost] = await Promise.all([Promise.race([failed, soon]), asked])
  if (error !== undefined) return `its last error: ${oneLine(reasonOf(error)).slice(0, REASON_CHARS)}`
  return hasHost === false
    ? 'no host takes jobs of this zone (jobsMax of host(), corespun host --jobs)'
    : undefined
}

/** Whether a host takes jobs: by their replies, or since nobody has had any for a while. */
async function isHosted(
  engine: Engine,
  zone: string,
  soon: Promise<undefined>,
): Promise<boolean | undefined> {
  const { messages } = engine
  if (messages !== undefined) {
    const hosts = await hostsOf(messages, SOON_MS)
    // Who may not ask has no reply.
    return hosts?.some((host) => host.zone === zone && host.jobsMax > 0)
  }
  const states = await Promise.race([engine.queues(), soon])
  const state = states?.find(({ name }) => name === queueName(zone))
  return state === undefined || state.lent > 0 || state.waitedMs < UNTAKEN_MS
}
