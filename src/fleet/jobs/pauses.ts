/**
 * How long a job waits until it is tried again.
 *
 * Pauses are a half to the whole of their length, by the key: jobs that failed together do not come again
 * together.
 */
import type { JobLimits } from './record.ts'

/** How long a job is given back uncounted by hosts whose module has no such function, by default. */
const MISSING_MS = 300_000
/** Pauses meanwhile are as long as that has lasted, within these. */
const MISSING_PAUSE_MS = { min: 250, max: 10_000 }

/** The pause after a number of failures. */
export const backoff = (key: string, { backoffMs, backoffMsMax }: JobLimits, failures: number): number =>
  Math.min(backoffMsMax, backoffMs * 2 ** (failures - 1)) * shareOf(key, failures)

/** The pause of a job whose function has been missing for so long; `undefined`: it is a failure by now. */
export function missingPause(
  key: string,
  { missingMs = MISSING_MS }: JobLimits,
  sinceMs: number,
): number | undefined {
  if (sinceMs >= missingMs) return undefined
  const { min, max } = MISSING_PAUSE_MS
  return Math.max(min, Math.min(max, sinceMs)) * shareOf(key, sinceMs)
}

function shareOf(key: string, count: number): number {
  let hash = count
  for (let index = 0; index < key.length; index++) hash = (Math.imul(hash, 31) + key.charCodeAt(index)) | 0
  return 0.5 + (hash >>> 0) / 2 ** 33
}
