/**
 * The client processes of the table `service`, bench/floor/client.c: they ask, check each answer, and report.
 *
 * In C, since they run on the cores that are measured: a client in Node brings its engine's helper threads
 * and a thread that keeps the time, and what they take from the server was half of its longest waits.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { GREETING, heavy, SEEDS } from '../../contenders/service/work.ts'
import { BenchError } from '../../harness/errors.ts'
import { compiled } from '../../harness/floor.ts'

/** What a client is to do. */
export interface ClientPlan {
  readonly port: number
  /** The first segment of the path. */
  readonly route: 'hello' | 'zone' | 'inline' | 'heavy'
  /** The response of `heavy`. */
  readonly expected?: string
  readonly connections: number
  readonly seconds: number
  /** Requests due in a second, over all connections; 0: as fast as answers come. */
  readonly perSecond: number
}

/** What it saw. */
export interface ClientReport {
  readonly answers: number
  readonly seconds: number
  /** Latencies in µs; `p99.9` only where they are enough for it. */
  readonly us: Readonly<Record<'p50' | 'p99' | 'max', number> & { 'p99.9'?: number }>
}

interface Printed {
  readonly answers: number
  /** Answers that were not the known ones, missing ones, and connections that failed. */
  readonly wrong: number
  readonly seconds: number
  readonly samples: number
  readonly us: Readonly<Record<'p50' | 'p99' | 'p99.9' | 'max', number>>
}

/** What comes in the first moments is checked and not counted. */
const WARM_UP_S = 0.3
/** With fewer, less than ten lie beyond p99.9, and of less than a thousand it is just the longest. */
const SAMPLES_FOR_P999 = 10_000
const SERVER = 'corespun serve'
let sums: readonly string[] | undefined

/** The client's binary; `undefined` when there is no compiler, and `skip` receives the reason. */
export function builtClient(skip: (what: string, why: string) => void): string | undefined {
  return compiled('client', 'the client in C', skip)
}

/**
 * Run one client to its end.
 * @throws {BenchError} `WRONG_ANSWER` when an answer was not the known one; `CONTENDER_DIED` when none came.
 */
export async function ask(client: string, plan: ClientPlan): Promise<ClientReport> {
  const { port, route, connections, seconds, perSecond } = plan
  const numbers = [port, connections, seconds, perSecond, WARM_UP_S].map(String)
  const { stdout } = await promisify(execFile)(client, [...numbers, ...pairs(plan)])
  const { answers, wrong, samples, us, ...report } = JSON.parse(stdout) as Printed
  if (wrong > 0) {
    const got = `${wrong} wrong or missing of ${answers}`
    throw new BenchError('WRONG_ANSWER', { contender: SERVER, work: route, got, expected: 'none' })
  }
  if (samples === 0) throw new BenchError('CONTENDER_DIED', { contender: SERVER, why: 'no answers' })
  const { 'p99.9': far, ...near } = us
  return { ...report, answers, us: samples < SAMPLES_FOR_P999 ? near : { ...near, 'p99.9': far } }
}

/** Paths and what must be answered, in turn. */
function pairs({ route, expected }: ClientPlan): readonly string[] {
  if (route === 'hello') return ['/hello', GREETING]
  if (expected !== undefined) return [`/${route}`, expected]
  sums ??= Array.from({ length: SEEDS }, (_, seed) => JSON.stringify({ sum: heavy(seed) }))
  return sums.flatMap((sum, seed) => [`/${route}/${seed}`, sum])
}
