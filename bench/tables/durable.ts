/**
 * Table `durable`: what a recorded step costs in a file, beside bare transactions on the same disk, and
 * workflows on Postgres, beside DBOS.
 *
 * Each figure has a process of its own in each round, and a file of its own where it is in one; what is
 * confirmed is synced.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onDisk } from '../harness/disk.ts'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'
import type { Measured } from './durable/process.ts'
import { startPostgres } from './fleet/servers.ts'

const OWN = 'corespun'
const BARE = 'node:sqlite'
const APPENDED = 'node:sqlite, one journal'
const DBOS = 'DBOS'
const SECTIONS = ['step', 'grouped', 'long', 'sleeping', 'workflows']
/**
 * Most time of a step beside a commit, in µs; least rate; most time of the last steps; of a start; bytes;
 * least rate of workflows beside DBOS.
 */
const STEP_US_MAX = 50
const GROUPED_MIN = 0.5
const LONG_MAX = 1.1
const START_MS_MAX = 3000
const SLEEPER_BYTES_MAX = 200
const WORKFLOWS_MIN = 1

const run = (context: Context): Promise<Row[]> =>
  onDisk(context, OWN, async (folder) => {
    const rows: Row[] = []
    for (const section of chosenOf(context, 'sections', SECTIONS))
      rows.push(...(await PARTS[section](folder, context)))
    return rows
  })

let files = 0

const inProcess = (what: string, file: string, count: number): Promise<Measured> =>
  printed('process.js', what, `sqlite:${file}`, count)

async function printed(script: string, ...words: readonly (string | number)[]): Promise<Measured> {
  // DBOS makes queries on a client that is busy, which pg deprecates.
  const node = [
    '--expose-gc',
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=DeprecationWarning',
  ]
  const all = [...node, `${DIST_FOLDER}/tables/durable/${script}`, ...words.map(String)]
  const { stdout } = await promisify(execFile)(process.execPath, all)
  return JSON.parse(stdout) as Measured
}

/** Contenders in turn, each in a new file. */
async function rounds(
  folder: string,
  context: Context,
  whats: Readonly<Record<string, readonly [what: string, count: number]>>,
): Promise<Samples> {
  const samples = new Samples()
  for (let round = 0; round < context.number('rounds'); round += 1)
    for (const name of shuffled(Object.keys(whats), round)) {
      const [what, count] = whats[name]
      context.progress(`${what}, ${name}: round ${round + 1}`)
      samples.add(name, await inProcess(what, join(folder, `${(files += 1)}.db`), count))
    }
  return samples
}

const SHAPE = { condition: 'synced', threads: 0 } as const
const TIME = { unit: 'µs', better: 'lower' } as const

const PARTS: Readonly<Record<string, (folder: string, context: Context) => Promise<Row[]>>> = {
  step: async (folder, context) => {
    const count = context.number('steps')
    const samples = await rounds(folder, context, { [OWN]: ['step', count], [BARE]: ['commits', count] })
    return samples.rows({ ...SHAPE, ...TIME, section: 'step', row: 'p50', figure: 'p50Us', against: BARE })
  },
  grouped: async (folder, context) => {
    const count = context.number('grouped')
    const whats = {
      [OWN]: ['grouped', count],
      [BARE]: ['transactions', count],
      [APPENDED]: ['one-journal', count],
    } as const
    const samples = await rounds(folder, context, whats)
    const rate = { section: 'grouped', row: '64 runs', figure: 'perSecond', unit: '1/s' } as const
    return samples.rows({ ...SHAPE, ...rate, better: 'higher', against: BARE })
  },
  long: async (folder, context) => {
    const samples = await rounds(folder, context, { [OWN]: ['long', context.number('long')] })
    const shape = { ...SHAPE, ...TIME, section: 'long' }
    return [
      ...samples.rows({ ...shape, row: 'first tenth', figure: 'firstUs' }),
      ...samples.rows({ ...shape, row: 'last tenth', figure: 'lastUs' }),
    ]
  },
  sleeping: async (folder, context) => {
    const count = context.number('sleeping')
    const file = join(folder, 'sleeping.db')
    context.progress(`sleeping: ${count} runs are started`)
    const { fileBytes } = await inProcess('fill', file, count)
    const samples = new Samples()
    for (let round = 0; round < context.number('rounds'); round += 1)
      samples.add(OWN, { fileBytes, ...(await inProcess('wake', file, count)) })
    const condition = `${count.toLocaleString('en-US')} runs`
    const shape = { ...SHAPE, condition, section: 'sleeping', better: 'lower' } as const
    return [
      ...samples.rows({ ...shape, row: 'start', figure: 'startMs', unit: 'ms' }),
      ...samples.rows({ ...shape, row: 'memory of each', figure: 'bytesEach', unit: 'B' }),
      ...samples.rows({ ...shape, row: 'file of each', figure: 'fileBytes', unit: 'B' }),
    ]
  },
  workflows: async (_, context) => {
    const postgres = await startPostgres(context.skip)
    if (postgres === undefined) return []
    const samples = new Samples()
    try {
      for (let round = 0; round < context.number('rounds'); round += 1)
        for (const name of shuffled([OWN, DBOS], round)) {
          context.progress(`workflows, ${name}: round ${round + 1}`)
          const { url, pid } = postgres
          samples.add(name, await printed('workflows.js', name, url, context.number('slice-s'), pid))
        }
    } finally {
      await postgres.end()
    }
    const shape = { ...SHAPE, section: 'workflows', unit: '1/s', better: 'higher', against: DBOS } as const
    return [
      ...samples.rows({ ...shape, row: '64 at once', figure: 'perSecond' }),
      ...samples.rows({ ...shape, row: 'per core', figure: 'perCpuSecond' }),
    ]
  },
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (section: string, row: string, contender = OWN): Row | undefined =>
    findRow(rows, { section, row, contender })
  const most = (bar: string, row: string, unit: string, max: number): Verdict =>
    judge(bar, [of('sleeping', row)], ({ median }) => [`${median.toFixed(0)} ${unit}`, median <= max])
  return [
    judge(
      `a step: at most a commit and ${STEP_US_MAX} µs`,
      [of('step', 'p50'), of('step', 'p50', BARE)],
      (own, bare) => [
        `${(own.median - bare.median).toFixed(0)} µs more`,
        own.median <= bare.median + STEP_US_MAX,
      ],
    ),
    judgeRatio(
      `grouped: at least ${GROUPED_MIN} × the same transactions, bare`,
      [of('grouped', '64 runs'), of('grouped', '64 runs', BARE)],
      (times) => times >= GROUPED_MIN,
    ),
    judgeRatio(
      `a long run: its last tenth at most ${LONG_MAX} × the time of its first`,
      [of('long', 'last tenth'), of('long', 'first tenth')],
      (times) => times <= LONG_MAX,
    ),
    most(`runs that sleep: start in at most ${START_MS_MAX} ms`, 'start', 'ms', START_MS_MAX),
    most(`each at most ${SLEEPER_BYTES_MAX} B of memory`, 'memory of each', 'B', SLEEPER_BYTES_MAX),
    judgeRatio(
      `workflows on Postgres: per core at least ${WORKFLOWS_MIN} × DBOS`,
      [of('workflows', 'per core'), of('workflows', 'per core', DBOS)],
      (times) => times >= WORKFLOWS_MIN,
    ),
  ]
}

export default {
  name: 'durable',
  title: 'Steps of durable runs',
  definitions: {
    step:
      'From the beginning of a step to that of the next one, in one run whose steps return a number. ' +
      'node:sqlite: an insertion of 160 bytes and its commit. Both WAL, synchronous=FULL.',
    grouped:
      'Steps of 64 runs at once in a second. node:sqlite: transactions of 64 insertions each, one for each ' +
      'of 64 journals, as runs make them; with one journal all are at the end of the table.',
    long: 'Mean time of a step in the first and in the last tenth of one run.',
    sleeping:
      'Runs that wait for a day outside of memory, and a process that offers their definition: until ' +
      'runs() has resolved and one of them was looked at, and how much its heap has grown a second later.',
    workflows:
      'Runs of three steps that return a number, 64 at once in one process, on one Postgres with its ' +
      'defaults, which sync what is confirmed: in a second, and in a second of CPU time of the process and ' +
      'of the server together. DBOS: startWorkflow, runStep and getResult, with 10 connections and without ' +
      'LISTEN, with which it was fastest here of 5 to 40 and with it.',
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    rounds: { value: 7, quick: 1, doc: 'processes of each contender' },
    steps: { value: 4000, quick: 500, doc: 'steps of one run' },
    grouped: { value: 64_000, quick: 6400, doc: 'steps of 64 runs together' },
    long: { value: 10_000, quick: 2000, doc: 'steps of the long run' },
    sleeping: { value: 100_000, quick: 2000, doc: 'runs that sleep' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of workflows in each process' },
  },
  run,
  verdicts,
} satisfies Table
