/**
 * The heavy stage of the service: a text is scored in a zone, once for all threads.
 *
 * What has been scored before comes out of a store; what two requests ask for at once is computed once. A
 * score that takes too long is cancelled: its caller hears so at once, and a worker that goes on with it for
 * longer than the zone's grace, a second, is replaced. One whose caller has gone is cancelled as well.
 */
import { createHash } from 'node:crypto'
import { exported, lift } from 'corespun/arrow'
import { StatusError } from 'corespun/http'
import { store } from 'corespun/store'
import { zone, type Zone } from 'corespun/zone'
import type { Score } from './pipeline.ts'
import { analyse, charge, type Cost, costs, parsed } from './stages.ts'

const STAGES = new URL('./stages.ts', import.meta.url).href

/** A score and what it cost. `ms`: from the request to the score. */
export interface Scored {
  readonly score: Score
  /** Whether it was there already. */
  readonly cached: boolean
  readonly ms: number
}

/** Scores by text, for all threads. */
export const scores = store.getOrCreate<Score>('service.scores', { entriesMax: 10_000, bytesMax: 2 ** 26 })

/** How many scores were cancelled, by all threads: 'late' or 'gone'. */
export const cancelled = store.getOrCreate<number>('service.cancelled')

/** Where the heavy stage runs: the ready-made zone with a worker for each core, the same for all threads. */
export function heavyZone(): Zone {
  return zone.cpu
}

/** Start the zone's workers and load the stages there, so that the first visitor does not wait for that. */
export async function warmUp(): Promise<void> {
  await heavyZone().broadcast(`import(${JSON.stringify(STAGES)})`)
}

interface Text {
  readonly path: string
  readonly text: string
}

/** The arrow from a text to its score, made when this worker first needs it. */
const scoring = once(pipeline)
/** The same and never run: its plan says nothing of what this worker alone has seen. */
const drawn = once(pipeline)

function pipeline() {
  return lift(exported(STAGES, parsed))
    .andThen(lift(exported(STAGES, analyse)))
    .named('parse and analyse')
    .on(heavyZone())
    .through(scores, keyOf)
    .named('score')
}

function once<Value>(make: () => Value): () => Value {
  let value: Value | undefined
  return () => (value ??= make())
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
    charge('score', startMs)
    return { score, cached, ms: charge(cached ? 'through' : 'on', startMs) }
  } catch (thrown) {
    if (thrown !== signal.reason) throw thrown
    cancelled.increment(gone.aborted ? 'gone' : 'late')
    if (gone.aborted)
      throw new StatusError(499, 'nobody waits any more', { code: 'CLIENT_GONE', cause: thrown })
    const reason = `scoring took longer than ${timeoutMs} ms and was cancelled`
    throw new StatusError(504, reason, { code: 'TASK_TIMEOUT', cause: thrown })
  }
}

/** The code of the pipeline, as it runs: what the page shows next to the plan. */
export function code(): string {
  return pipeline.toString()
}

/**
 * What happens to a text, and what each step has cost so far: in all workers, by every score that came.
 *
 * `explain()` draws it and would tell the costs of this worker, by the runs of it that were measured; a
 * visitor whose score came from another one would not be among them.
 */
export function plan(): string {
  const [head, ...lines] = drawn().explain().trimEnd().split('\n')
  const width = Math.max(...lines.map((line) => line.length))
  const costed = lines.map((line) => {
    const step = /\w+/.exec(line)?.[0] ?? ''
    const cost = costs.get(step)
    return cost === undefined ? line : `${line.padEnd(width)}  ${told(step, cost)}`
  })
  return `${[`${head}; costs in all workers`, ...costed].join('\n')}\n`
}

const COUNTED: ReadonlyMap<string, string> = new Map([
  ['through', 'from the store'],
  ['on', 'from the zone'],
])

function told(step: string, { calls, ms }: Cost): string {
  const what = COUNTED.get(step) ?? (calls === 1 ? 'call' : 'calls')
  return `${calls} ${what}, ${(ms / calls).toFixed(2)} ms each`
}
