/**
 * The section `seed` of table http: the seed's own command, its runs one after the other in one process.
 *
 * The rivals of the seed ran on a machine of their own; the report sets their figures there, those measured
 * on a machine like this one, and Corespun's side by side.
 */
import { Samples } from '../../harness/rounds.ts'
import type { Context, Row } from '../../harness/table.ts'
import { load, type LoadPlan } from './load.ts'
import { C_FLOOR, type Server } from './servers.ts'

/** Who is asked. */
export const SEED_CONTENDERS: readonly string[] = ['corespun', 'corespun, two workers', 'node:http', C_FLOOR]

/** Rows of the seed's table: Corespun's one figure is compared with each of them. */
const SEED_ROWS = [
  'zio-http-jdk11',
  'zio-http-jdk19',
  'zio-http-zing',
  'http4s-jdk11',
  'http4s-jdk19',
  'http4s-zing',
  'http4s-zio-before',
  'http4s-zio-after',
]
const FIGURES = ['rps', 'requests', 'p50', 'p75', 'p90', 'p99', 'avg', 'sd', 'max']
/** What wrk prints beside the latencies: column, unit, and which way is better. */
const PRINTED = [
  ['within', '%', 'higher'],
  ['rate', '1/s', 'higher'],
  ['rateSd', '1/s', 'lower'],
  ['rateMax', '1/s', 'higher'],
  ['rateWithin', '%', 'higher'],
  ['transfer', 'MiB/s', 'higher'],
] as const
const CONDITION = 'both on all cores'
const RUNS = 5

/** Measure. @throws {BenchError} `WRONG_ANSWER`; `CONTENDER_DIED`. */
export async function seed(servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  const plan: LoadPlan = { threads: 5, connections: 100, seconds: context.quick ? 1 : 10, prefix: [] }
  for (const server of servers) {
    await server.check('hello')
    // All runs of one process, one after the other: that is what makes them hot.
    for (let run = 1; run <= RUNS; run += 1) {
      context.progress(`seed, ${server.name}: run ${run}`)
      const before = server.cpuSeconds
      const { requests, seconds, bytes, us, perThread, within } = await load('hello', server.port, plan)
      const { mean: avg, ...others } = us
      const cpu = ((server.cpuSeconds - before) / requests) * 100_000
      const transfer = bytes / seconds / 2 ** 20
      if (perThread !== undefined && within !== undefined) {
        const { mean: rate, sd: rateSd, max: rateMax, within: rateWithin } = perThread
        samples.add(server.name, { within, rate, rateSd, rateMax, rateWithin })
      }
      samples.add(server.name, { rps: requests / seconds, requests, avg, ...others, cpu, transfer })
      samples.add(server.name, { [`p99 of run ${run}`]: us.p99 })
    }
  }
  const shape = { section: 'seed', condition: CONDITION, threads: 0 } as const
  const plain = FIGURES.flatMap((figure) => {
    const isMore = figure === 'rps' || figure === 'requests'
    const unit = figure === 'rps' ? '1/s' : figure === 'requests' ? '' : 'µs'
    const seeds = { corespun: SEED_ROWS.map((row) => `http/hello/${row}/${figure}`) }
    return samples.rows({ ...shape, row: figure, figure, unit, better: isMore ? 'higher' : 'lower', seeds })
  })
  const printed = PRINTED.flatMap(([figure, unit, better]) => {
    const seeds = { corespun: SEED_ROWS.map((row) => `http/threads/${row}/${figure}`) }
    return samples.rows({ ...shape, row: figure, figure, unit, better, seeds })
  })
  const hot = Array.from({ length: RUNS }, (_, index) => `p99 of run ${index + 1}`)
  return [
    ...plain,
    ...printed,
    ...samples.rows({ ...shape, row: 'p99.9', figure: 'p99.9', unit: 'µs', better: 'lower' }),
    ...samples.rows({ ...shape, row: 'CPU per 100,000', figure: 'cpu', unit: 's', better: 'lower' }),
    ...hot.flatMap((figure) =>
      samples.rows({ ...shape, section: 'hot run', row: figure, figure, unit: 'µs', better: 'lower' }),
    ),
  ]
}
