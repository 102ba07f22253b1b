/**
 * The expensive stage of the service: a text is scored in a zone, once for all threads.
 *
 * Earlier scores come from a store, and simultaneous requests for one text share its computation. A score
 * that takes too long, or whose client disconnects, is cancelled: its caller receives the error at once, and
 * a worker that does not stop within the zone's grace period of one second is replaced.
 */
import { createHash } from 'node:crypto'
import { exported, lift } from 'corespun/arrow'
import { StatusError } from 'corespun/http'
import { store } from 'corespun/store'
import { zone, type Zone } from 'corespun/zone'
import type { Score } from './pipeline.ts'
import { analyse, charge, type Cost, costs, parsed } from './stages.ts'

const STAGES = new URL('./stages.ts', import.meta.url).href

/** A score and its cost. `ms`: from the request to the score. */
export interface Scored {
  readonly score: Score
  /** Whether the store contained it already. */
  readonly cached: boolean
  readonly ms: number
}

/** Scores by text, for all threads. */
export const scores = store.getOrCreate<Score>('service.scores', { entriesMax: 10_000, bytesMax: 2 ** 26 })

/** How many scores all threads have cancelled: 'late', or 'disconnected' (the client). */
export const cancelled = store.getOrCreate<number>('service.cancelled')

/** The zone of the expensive stage: the predefined one, with a worker per core, shared by all threads. */
export function heavyZone(): Zone {
  return zone.cpu
}

/** Start the zone's workers and load the stages there, so that the first visitor does not wait for it. */
export async function warmUp(): Promise<void> {
  await heavyZone().broadcast(`import(${JSON.stringify(STAGES)})`)
}

interface Text {
  readonly path: string
  readonly text: string
}

/** The arrow from a text to its score, built when this worker first needs it. */
const scoring = once(pipeline)
/** The same arrow, never run: its plan contains no costs of this worker alone. */
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
 * @param limits.client Aborts when the client disconnects; then its task is cancelled too.
 * @throws {StatusError} 504 `TASK_TIMEOUT`; 499 `CLIENT_DISCONNECTED`. @throws {ZoneError} `ZONE_FULL`.
 */
export async function scoreOf(
  path: string,
  text: string,
  { timeoutMs, client }: { readonly timeoutMs: number; readonly client: AbortSignal },
): Promise<Scored> {
  const startMs = performance.now()
  const cached = scores.has(keyOf({ path, text }))
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), client])
  try {
    const score = await scoring().run({ path, text }, signal)
    charge('score', startMs)
    return { score, cached, ms: charge(cached ? 'through' : 'on', startMs) }
  } catch (thrown) {
    if (thrown !== signal.reason) throw thrown
    cancelled.increment(client.aborted ? 'disconnected' : 'late')
    if (client.aborted)
      throw new StatusError(499, 'the client disconnected', { code: 'CLIENT_DISCONNECTED', cause: thrown })
    const reason = `scoring took longer than ${timeoutMs} ms and was cancelled`
    throw new StatusError(504, reason, { code: 'TASK_TIMEOUT', cause: thrown })
  }
}

/** The source code of the pipeline, which the page shows next to the plan. */
export function code(): string {
  return pipeline.toString()
}

/**
 * The steps of the pipeline and what each has cost so far, over all scores of all workers.
 *
 * `explain()` draws the steps. Its own costs are not used, since it measures the runs of this worker only.
 */
export function plan(): string {
  const [head, ...lines] = drawn().explain().trimEnd().split('\n')
  const width = Math.max(...lines.map((line) => line.length))
  const costed = lines.map((line) => {
    const step = /\w+/.exec(line)?.[0] ?? ''
    const cost = costs.get(step)
    return cost === undefined ? line : `${line.padEnd(width)}  ${costText(step, cost)}`
  })
  return `${[`${head}; costs in all workers`, ...costed].join('\n')}\n`
}

const COUNTED: ReadonlyMap<string, string> = new Map([
  ['through', 'from the store'],
  ['on', 'from the zone'],
])

function costText(step: string, { calls, ms }: Cost): string {
  const what = COUNTED.get(step) ?? (calls === 1 ? 'call' : 'calls')
  return `${calls} ${what}, ${(ms / calls).toFixed(2)} ms each`
}
