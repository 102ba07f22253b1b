/**
 * Table `observe`: what it takes to count all that a process does, and to show it.
 *
 * Servers and load are those of table http. `again` is the same server as `corespun`, so its ratio is how
 * exact the others are.
 */
import { Child, nodeCommand } from '../harness/child.ts'
import { SPINNING } from '../harness/conditions.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { addSamples, LOAD_DEFINITIONS, LOAD_PARAMETERS, PINNED, rowsOf, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { AGAIN, OBSERVED } from './http/servers.ts'
import { CPU } from './http/verdicts.ts'
import type { Calls, Scraped, Scrapes, Unused } from './observe/process.ts'
import { namedShare } from './observe/profile.ts'

const OFF = 'corespun'
const SECTIONS = ['hello', 'user', 'constant', 'pipelined']
/** Sections whose CPU is judged. */
const JUDGED = ['hello', 'user']
const REQUEST_FACTOR_MAX = 1.03
const CALL_NS_MAX = 30
const SCRAPE_MS_MAX = 5
const OTHER_MS_MAX = 0.2
const NAMED_MIN = 95
const MORE = ['call', 'scrape', 'unused', 'profile']
const SHAPE = { condition: SPINNING.name, threads: 1, better: 'lower' } as const

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  const sections = chosenOf(context, 'sections', [...SECTIONS, ...MORE])
  const rows: Row[] = []
  const asked = SECTIONS.filter((section) => sections.includes(section))
  if (asked.length > 0) rows.push(...(await requests(asked, context)))
  if (sections.includes('call')) rows.push(...(await calls(context)))
  if (sections.includes('scrape')) rows.push(...(await scrapes(context)))
  if (sections.includes('unused')) rows.push(...(await unused()))
  if (sections.includes('profile')) rows.push(...(await profiles(context)))
  return rows
}

/** Two processes of one program differ by some percent for as long as they live, so many are measured. */
async function requests(sections: readonly string[], context: Context): Promise<Row[]> {
  const measured = sections.map((section) => ({ section, samples: new Samples() }))
  for (let round = 0; round < context.number('processes'); round += 1)
    await withServers(
      shuffled([OFF, AGAIN, OBSERVED], round),
      ['taskset', '-c', '0'],
      context,
      async (servers) => {
        for (const { section, samples } of measured)
          await addSamples(samples, section, servers, context, false)
      },
    )
  return measured.flatMap(({ section, samples }) => rowsOf(section, samples, PINNED, OFF))
}

async function calls(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const order: Omit<Calls, 'isObserved'> = { what: 'calls', calls: context.number('calls'), bursts: 5 }
  for (let round = 0; round < context.number('processes'); round += 1)
    for (const contender of shuffled([OFF, AGAIN, OBSERVED], round)) {
      context.progress(`call, ${contender}: process ${round + 1}`)
      const found = { ...order, isObserved: contender === OBSERVED }
      samples.add(contender, await answered<{ ns: number; cpuNs: number }>(found))
    }
  const shape = { ...SHAPE, section: 'call', unit: 'ns', against: OFF } as const
  return [
    ...samples.rows({ ...shape, row: 'CPU of both threads', figure: 'cpuNs' }),
    ...samples.rows({ ...shape, row: 'time', figure: 'ns' }),
  ]
}

async function scrapes(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const scrapes = context.number('scrapes')
  const order: Scrapes = { what: 'scrapes', routes: 100, zones: 8, functions: 20, scrapes }
  for (let round = 0; round < context.number('processes'); round += 1) {
    context.progress(`scrape: process ${round + 1}`)
    const { ms, otherMs } = await answered<Scraped>(order)
    samples.add(OBSERVED, { ms, ...(otherMs === undefined ? {} : { otherMs }) })
  }
  const shape = { ...SHAPE, section: 'scrape', unit: 'ms' } as const
  return [
    ...samples.rows({ ...shape, row: 'the thread that responds', figure: 'ms' }),
    ...samples.rows({ ...shape, row: 'another thread', figure: 'otherMs' }),
  ]
}

async function unused(): Promise<Row[]> {
  const samples = new Samples()
  samples.add(OFF, { modules: await answered<number>({ what: 'unused' }) })
  return samples.rows({
    ...SHAPE,
    section: 'unused',
    row: 'modules that are loaded',
    figure: 'modules',
    unit: 'modules',
  })
}

async function profiles(context: Context): Promise<Row[]> {
  const samples = new Samples()
  for (let round = 0; round < context.number('profiles'); round += 1) {
    context.progress(`profile: ${round + 1}`)
    samples.add(OBSERVED, { share: await namedShare(context.number('profile-s')) })
  }
  const shape = { section: 'profile', condition: SPINNING.name, threads: 0 } as const
  const row = 'CPU time with the name of a route or task'
  return samples.rows({ ...shape, row, figure: 'share', unit: '%', better: 'higher' })
}

async function answered<Answer>(order: Calls | Scrapes | Unused): Promise<Answer> {
  const child = await Child.start('corespun', [
    ...SPINNING.prefix,
    ...nodeCommand('tables/observe/process.js'),
  ])
  try {
    return await child.order<Answer>(order)
  } finally {
    await child.end()
  }
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const requests = JUDGED.map((section) => {
    const row = findRow(rows, { section, row: CPU, contender: OBSERVED, condition: PINNED })
    const bar = `${section}: CPU at most ${REQUEST_FACTOR_MAX} × that without`
    return judge<[NonNullable<Row['ratio']>]>(bar, [row?.ratio], ({ median, low, high }) => [
      `${median.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`,
      median <= REQUEST_FACTOR_MAX,
    ])
  })
  const call = (contender: string): Row | undefined =>
    findRow(rows, { section: 'call', row: 'CPU of both threads', contender })
  const scrape = (row: string, most: number): Verdict =>
    judge<[Row]>(
      `a scrape of 100 routes and 8 zones: ${row} at most ${most} ms`,
      [findRow(rows, { section: 'scrape', row })],
      ({ median }) => [`${median.toFixed(3)} ms`, median <= most],
    )
  return [
    ...requests,
    judge<[Row, Row]>(
      `an empty call: at most ${CALL_NS_MAX} ns more CPU`,
      [call(OBSERVED), call(OFF)],
      (on, off) => [
        `${on.median.toFixed(0)} ns against ${off.median.toFixed(0)} ns`,
        on.median - off.median <= CALL_NS_MAX,
      ],
    ),
    scrape('the thread that responds', SCRAPE_MS_MAX),
    scrape('another thread', OTHER_MS_MAX),
    judge<[Row]>(
      'nothing imported: no module of metrics, observe or telemetry is loaded',
      [findRow(rows, { section: 'unused' })],
      ({ median }) => [`${median}`, median === 0],
    ),
    judge<[Row]>(
      `a profile of the example service: at least ${NAMED_MIN} % of CPU time has a name`,
      [findRow(rows, { section: 'profile' })],
      ({ median }) => [`${median.toFixed(1)} %`, median >= NAMED_MIN],
    ),
  ]
}

export default {
  name: 'observe',
  title: 'What it takes to see a process run',
  definitions: {
    ...LOAD_DEFINITIONS,
    hello: 'GET / returns 13 bytes of text.',
    user: 'GET /user/7 returns JSON made for each request.',
    constant: 'GET of a path whose response never changes; the core sends it without JavaScript.',
    pipelined: 'hello, 16 requests in one write.',
    [OBSERVED]: 'The same program after `startMetrics()` and `observe()`.',
    [AGAIN]: 'The same program as corespun, in a process of its own: how exact the ratios are.',
    call: 'Empty calls to one worker, in bursts; the median of five bursts of a process.',
    scrape:
      'GET of `metrics()` of a server on the native core, by a client in a thread of its own: 100 routes, ' +
      '8 zones of one worker, and 20 functions in each, which have run. CPU time, of the later half of the ' +
      'scrapes.',
    unused: 'A program with a zone and an app that imports nothing of what looks at them.',
    profile:
      '`corespun profile` of `corespun serve examples/service/app.ts` on all cores, under four clients: ' +
      'scores of texts that are ever new, and statistics.',
    'another thread': 'CPU time of the worker that a scrape takes most of, without what asking for it takes.',
  },
  parameters: {
    sections: { value: [...SECTIONS, ...MORE].join(','), doc: 'which, by comma' },
    rounds: { value: 2, quick: 1, doc: 'rounds in which the servers of one start take their turn' },
    'slice-s': LOAD_PARAMETERS['slice-s'],
    connections: { value: 32, doc: 'connections of the load' },
    load: LOAD_PARAMETERS.load,
    calls: { value: 200_000, quick: 20_000, doc: 'calls in a burst' },
    processes: { value: 9, quick: 2, doc: 'processes of each kind' },
    profiles: { value: 7, quick: 1, doc: 'profiles of the service' },
    'profile-s': { value: 4, quick: 2, doc: 'seconds of a profile' },
    scrapes: { value: 50, quick: 10, doc: 'scrapes of a process' },
  },
  run,
  verdicts,
} satisfies Table
