/**
 * The shortest schedule that fails in the same way: choices are taken back, halves first, then one by one.
 *
 * Delta debugging (Zeller and Hildebrandt, 2002), bounded: the result is shorter, maybe not the shortest.
 */
import type { Deviation } from './play.ts'

/** Most runs of one search. */
const RUNS_MAX = 400

/** @param fails The deviations that such a run makes if it fails in the same way. */
export async function shrink(
  found: readonly Deviation[],
  fails: (deviations: readonly Deviation[]) => Promise<readonly Deviation[] | undefined>,
): Promise<readonly Deviation[]> {
  let best = found
  let size = best.length
  for (let runs = 0; size >= 1 && best.length > 0;) {
    let isShorter = false
    for (let from = 0; from < best.length && runs < RUNS_MAX; runs++) {
      const shorter = await fails([...best.slice(0, from), ...best.slice(from + size)])
      if (shorter === undefined || shorter.length >= best.length) from += size
      else {
        best = shorter
        isShorter = true
      }
    }
    if (runs >= RUNS_MAX) break
    if (size > 1) size = Math.ceil(Math.min(size, best.length) / 2)
    else if (!isShorter) break
  }
  return best
}
