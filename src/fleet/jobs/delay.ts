/**
 * What a job that has not ended in time waits for: hosts, or an attempt that does not fail.
 *
 * It is asked when the time of `result()` is over, so it is found out soon or not at all.
 */
import { oneLine, reasonOf } from '../../base/index.ts'
import type { Engine, KeyValue } from '../engine/engine.ts'
import { hostsOf } from '../presence.ts'
import { thrownBy } from './frames.ts'
import { readRecord } from './record.ts'

const SOON_MS = 100
const REASON_CHARS = 500

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
  const asked = Promise.resolve().then(() => hostsOf(engine, SOON_MS))
  const [error, hosts] = await Promise.all([Promise.race([failed, soon]), asked.catch(() => undefined)])
  if (error !== undefined) return `its last error: ${oneLine(reasonOf(error)).slice(0, REASON_CHARS)}`
  // Who may not ask has no reply.
  if (hosts === undefined || hosts.some((host) => host.zone === zone && host.jobsMax > 0)) return undefined
  return 'no host takes jobs of this zone (jobsMax of host(), corespun host --jobs)'
}
