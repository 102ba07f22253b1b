/**
 * The heavy stage of the service: a text is scored in a zone, once for all threads.
 *
 * What has been scored before comes out of a store; what two requests ask for at once is computed once. A
 * score that takes too long is cancelled: its caller hears so at once, and the worker that would go on is
 * replaced.
 */
import { createHash } from 'node:crypto'
import { StatusError } from 'skein/http'
import { store } from 'skein/store'
import { zone, type Zone } from 'skein/zone'
import type { Score } from './pipeline.ts'

const PIPELINE = new URL('./pipeline.ts', import.meta.url)
const ZONE = 'service'

/** A score and what it cost. `ms`: from the request to the score. */
export interface Scored {
  readonly score: Score
  /** Whether it was there already. */
  readonly cached: boolean
  readonly ms: number
}

/** Scores by text, for all threads. */
export const scores = store.getOrCreate<Score>('service.scores', { entriesMax: 10_000, bytesMax: 2 ** 26 })

/** What all workers have counted. */
const costs = store.getOrCreate<number>('service.costs')

/** Where the heavy stage runs: the same zone for all workers that serve. */
export function heavyZone(): Zone {
  try {
    return zone.get(ZONE) as Zone
  } catch {
    return madeZone()
  }
}

function madeZone(): Zone {
  try {
    return zone.create(ZONE, { tasksMax: 256, graceMs: 100 })
  } catch {
    return zone.get(ZONE) as Zone // another worker was quicker
  }
}

/**
 * Score a text.
 * @param timeoutMs Longest time for it, waiting included.
 * @throws {ZoneError} `TASK_TIMEOUT`; `ZONE_FULL` when 256 others wait.
 */
export async function scoreOf(path: string, text: string, timeoutMs: number): Promise<Scored> {
  const startMs = performance.now()
  const key = `${path} ${createHash('sha256').update(text).digest('base64url')}`
  const signal = AbortSignal.timeout(timeoutMs)
  let cached = true
  const compute = async (): Promise<Score> => {
    cached = false
    const result = await heavyZone().execute(PIPELINE, 'scoreText', [path, text], { timeoutMs })
    return result.value as Score
  }
  try {
    // The signal ends waiting for somebody else's computation; its own has its own time.
    const score = await scores.getOrCompute(key, compute, { signal })
    const ms = performance.now() - startMs
    costs.increment(cached ? 'hits' : 'runs')
    if (!cached) costs.increment('runMs', ms)
    return { score, cached, ms }
  } catch (thrown) {
    costs.increment('cancelled')
    if (thrown !== signal.reason) throw thrown
    const reason = `another request computes this score, and that takes longer than ${timeoutMs} ms`
    throw new StatusError(504, reason, { code: 'TASK_TIMEOUT', cause: thrown })
  }
}

/** What happens to a text, with the costs that all workers have measured so far. */
export function plan(): string {
  const [runs, runMs, hits, cancelled] = ['runs', 'runMs', 'hits', 'cancelled'].map(
    (key) => costs.get(key) ?? 0,
  )
  const mean = runs === 0 ? 'not measured yet' : `${(runMs! / runs!).toFixed(1)} ms each, hop included`
  return [
    `score: text -> score`,
    `  remembered in store ${scores.id}   ${hits} found there`,
    `    on zone ${ZONE}                      ${runs} runs, ${mean}; ${cancelled} cancelled or refused`,
    `      parse`,
    `      measure`,
    `      grade`,
  ].join('\n')
}
