/**
 * Table `service`: what a heavy route does to a light one of the same server, with its heavy stage in a zone
 * and inline; and what other programs leave of the processor for that zone.
 *
 * The server is `corespun serve` on all cores, as users run it; its clients are processes on the same
 * machine, so they compete for the cores too, alike in every row, and are as light as can be.
 */
import { type Figures, Samples } from '../harness/rounds.ts'
import { type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { besideBusy, shareOf } from './service/busy.ts'
import { ask, builtClient } from './service/client.ts'
import { withService } from './service/process.ts'

const PORT = 39_500
const QUIET = 'quiet'
const ZONE = 'heavy in zone.cpu'
const INLINE = 'heavy inline'
/** The routes with the heavy stage. */
type HeavyRoute = 'zone' | 'inline'

/** What is asked for beside hello, by contender. */
const HEAVY: ReadonlyMap<string, HeavyRoute | undefined> = new Map([
  [QUIET, undefined],
  [ZONE, 'zone'],
  [INLINE, 'inline'],
])
/** How hello is asked for: requests due in a second (0: as fast as answers come), and connections. */
const LOADS = [
  { section: 'hello, 500 a second', perSecond: 500, connections: 10 },
  { section: 'hello, as fast as it goes', perSecond: 0, connections: 20 },
] as const
type Load = (typeof LOADS)[number]
const HEAVY_CONNECTIONS = 8
/** The heavy load begins this long before hello is measured, and ends after it. */
const LEAD_S = 0.5
const FACTOR_MAX = 2
const SHARE_SECTION = 'the heavy route, beside busy processes'
/** The zone has a worker for each core, and each core a busy process. */
const FAIR_SHARE = 0.5
const OF_FAIR_MIN = 0.5

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  const client = builtClient(context.skip)
  if (client === undefined) return rows
  await withService(PORT, client, async (pid) => {
    for (const load of LOADS) rows.push(...(await measure(client, load, context)))
    rows.push(...(await measureShare(client, pid, context)))
  })
  return rows
}

/** How much of its fair share the server gets whose heavy route is saturated, where others take all cores. */
async function measureShare(client: string, pid: number, context: Context): Promise<Row[]> {
  const samples = new Samples()
  const seconds = context.number('slice-s')
  for (let round = 0; round < context.number('rounds'); round += 1) {
    context.progress(`${SHARE_SECTION}: round ${round + 1}`)
    const share = await besideBusy(async (busy) => {
      const heavy = heavyLoad(client, 'zone', seconds)
      await new Promise((resolve) => setTimeout(resolve, LEAD_S * 1000))
      const [measured] = await Promise.all([shareOf(pid, busy, seconds), heavy])
      return measured
    })
    samples.add(ZONE, { share: share / FAIR_SHARE })
  }
  const shape = { section: SHARE_SECTION, condition: 'all on all cores', threads: 0 } as const
  return samples.rows({ ...shape, row: 'share', figure: 'share', unit: '× fair', better: 'higher' })
}

async function measure(client: string, load: Load, context: Context): Promise<Row[]> {
  const samples = new Samples()
  const seconds = context.number('slice-s')
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const [contender, route] of HEAVY) {
      context.progress(`${load.section}, ${contender}: round ${round + 1}`)
      const heavy = route === undefined ? undefined : heavyLoad(client, route, seconds)
      if (heavy !== undefined) await new Promise((resolve) => setTimeout(resolve, LEAD_S * 1000))
      const { perSecond, connections } = load
      const hello = await ask(client, { port: PORT, route: 'hello', connections, seconds, perSecond })
      const beside = await heavy
      const figures: Figures = { ...hello.us, 'hello/s': hello.answers / hello.seconds }
      samples.add(
        contender,
        beside === undefined ? figures : { ...figures, 'heavy/s': beside.answers / beside.seconds },
      )
    }
  }
  return rowsOf(load.section, samples)
}

function heavyLoad(client: string, route: HeavyRoute, seconds: number): ReturnType<typeof ask> {
  const long = seconds + 2 * LEAD_S
  return ask(client, { port: PORT, route, connections: HEAVY_CONNECTIONS, seconds: long, perSecond: 0 })
}

function rowsOf(section: string, samples: Samples): Row[] {
  const shape = { section, condition: 'all on all cores', threads: 0 } as const
  const row = (figure: string, unit: string, better: 'lower' | 'higher'): Row[] =>
    samples.rows({ ...shape, row: figure, figure, unit, better, against: QUIET })
  // Ratios compare round with round, so a figure that some round lacks is left out for that contender.
  const rounds = samples.of(QUIET, 'p50').length
  const isWhole = (contender: string): boolean => samples.of(contender, 'p99.9').length === rounds
  const far = row('p99.9', 'µs', 'lower').filter((each) => isWhole(QUIET) && isWhole(each.contender))
  return [
    ...['p50', 'p99'].flatMap((name) => row(name, 'µs', 'lower')),
    ...far,
    ...row('max', 'µs', 'lower'),
    ...row('hello/s', '1/s', 'higher'),
    ...row('heavy/s', '1/s', 'higher'),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return [...latencyVerdicts(rows), shareVerdict(rows)]
}

function shareVerdict(rows: readonly Row[]): Verdict {
  const share = findRow(rows, { section: SHARE_SECTION, row: 'share', contender: ZONE })
  const bar = `zone.cpu beside a busy process for each core: at least ${OF_FAIR_MIN} × its fair share`
  return judge(bar, [share], ({ median }) => [`${median.toFixed(2)} ×`, median >= OF_FAIR_MIN])
}

function latencyVerdicts(rows: readonly Row[]): Verdict[] {
  return LOADS.map(({ section }) => {
    const of = (contender: string): number | undefined =>
      findRow(rows, { section, row: 'p99', contender })?.ratio?.median
    const bar = `${section}: p99 beside a saturated heavy route in zone.cpu at most ${FACTOR_MAX} × quiet`
    return judge<[number, number]>(bar, [of(ZONE), of(INLINE)], (zone, inline) => [
      `${zone.toFixed(2)} ×; with the stage inline ${inline.toFixed(0)} ×`,
      zone <= FACTOR_MAX,
    ])
  })
}

export default {
  name: 'service',
  title: 'A light route beside a heavy one',
  definitions: {
    server: 'corespun serve on all cores; /hello is a handler, the heavy routes compute for some 10 ms.',
    heavy: `One client process in C, ${HEAVY_CONNECTIONS} connections that ask again at once; all checked.`,
    'hello, 500 a second':
      'Ten connections, paced; latency counts from when it was due, however late it could be sent.',
    'p99.9': 'Only where each slice had 10,000 samples, so that ten or more lie beyond it.',
    'hello, as fast as it goes': 'Twenty connections that ask again at once.',
    [SHARE_SECTION]:
      'A process for each core that only computes, in the same session as the server. CPU time of the ' +
      'server as a part of all that it and they get, as a ratio to the half that equal weights leave it.',
    ratio: 'Against quiet in the same round; the median of the rounds.',
  },
  parameters: {
    rounds: { value: 9, quick: 2, doc: 'rounds in which all three take their turn' },
    'slice-s': { value: 1.8, quick: 1.3, doc: 'seconds of one slice; its first 0.3 are not counted' },
  },
  run,
  verdicts,
} satisfies Table
