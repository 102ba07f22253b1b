/**
 * The heavy stage of the service: a text is scored in a zone, once for all threads.
 *
 * What has been scored before comes out of a store; what two requests ask for at once is computed once. A
 * score that takes too long is cancelled: its caller hears so at once, and the worker that would go on is
 * replaced. One whose caller has gone is cancelled as well.
 */
import { createHash } from 'node:crypto'
import { exported, lift } from 'skein/arrow'
import { StatusError } from 'skein/http'
import { store } from 'skein/store'
import { zone, type Zone } from 'skein/zone'
import { analyse, parsed, type Score } from './pipeline.ts'

const PIPELINE = new URL('./pipeline.ts', import.meta.url).href

/** A score and what it cost. `ms`: from the request to the score. */
export interface Scored {
  readonly score: Score
  /** Whether it was there already. */
  readonly cached: boolean
  readonly ms: number
}

/** Scores by text, for all threads. */
export const scores = store.getOrCreate<Score>('service.scores', { entriesMax: 10_000, bytesMax: 2 ** 26 })

/** Where the heavy stage runs: the ready-made zone with a worker for each core, the same for all threads. */
export function heavyZone(): Zone {
  return zone.cpu as Zone
}

/** Start the zone's workers and load the stages there, so that the first visitor does not wait for that. */
export async function warmUp(): Promise<void> {
  await heavyZone().broadcast(`import(${JSON.stringify(PIPELINE)})`)
}

interface Text {
  readonly path: string
  readonly text: string
}

/** The arrow from a text to its score, made when this worker first needs it. */
const scoring = once(() =>
  lift(exported(PIPELINE, parsed))
    .andThen(lift(exported(PIPELINE, analyse)))
    .named('parse and analyse')
    .on(heavyZone())
    .through(scores, keyOf)
    .named('score'),
)

function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => (made ??= make())
}

function keyOf({ path, text }: Text): string {
  return `${path} ${createHash('sha256').update(text).digest('base64url')}`
}

/**
 * Score a text.
 * @param limits.timeoutMs Longest time for it, waiting included; then its task is cancelled.
 * @param limits.gone Aborted when nobody waits for the score any more: it is cancelled too.
 * @throws {StatusError} 504 `TASK_TIMEOUT`; 499 `CLIENT_GONE`. @throws {ZoneError} `ZONE_FULL`.
 */
export async function scoreOf(
  path: string,
  text: string,
  { timeoutMs, gone }: { readonly timeoutMs: number; readonly gone: AbortSignal },
): Promise<Scored> {
  const startMs = performance.now()
  const cached = scores.has(keyOf({ path, text }))
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), gone])
  try {
    const score = await scoring().run({ path, text }, signal)
    return { score, cached, ms: performance.now() - startMs }
  } catch (thrown) {
    if (thrown !== signal.reason) throw thrown
    if (gone.aborted)
      throw new StatusError(499, 'nobody waits any more', { code: 'CLIENT_GONE', cause: thrown })
    const reason = `scoring took longer than ${timeoutMs} ms and was cancelled`
    throw new StatusError(504, reason, { code: 'TASK_TIMEOUT', cause: thrown })
  }
}

/** What happens to a text, with the costs that this worker has measured so far. */
export function plan(): string {
  return scoring().explain()
}
