/**
 * Table `share`: one large read-only value in four threads, shared or as a copy in each.
 *
 * Each contender has a process of its own in each round. The memory is what remains above a process with four
 * workers that do nothing.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import type { Shared } from './share/process.ts'

const COPIES = 'postMessage, a copy in each thread'
const CONTENDERS = ['bare', 'corespun', COPIES, 'fields']
const LOOPS = ['one number', 'five numbers', 'numbers, strings, a flag', 'one number of 64 views']
const OWN = { contender: 'corespun' }

async function run(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const records = context.number('records')
  for (let round = 0; round < context.number('rounds'); round += 1) {
    context.progress(`share: round ${round + 1}`)
    const found = new Map<string, Shared>()
    for (const contender of shuffled(CONTENDERS, round))
      found.set(contender, await inProcess(contender, records))
    const bareMb = found.get('bare')?.mb ?? 0
    for (const contender of ['corespun', COPIES]) {
      const { ms = 0, cpuMs = 0, mb = 0 } = found.get(contender) ?? {}
      samples.add(contender, { ms, cpuMs, mb: mb - bareMb })
    }
    for (const [name, ns] of Object.entries(found.get('fields')?.ns ?? {})) {
      const [loop, contender] = name.split(' | ')
      samples.add(contender, { [loop]: ns })
    }
  }
  const shape = { row: `${records} records`, condition: 'four threads', threads: 4, better: 'lower' } as const
  const field = {
    section: 'a field',
    condition: 'one thread',
    threads: 0,
    unit: 'ns',
    better: 'lower',
  } as const
  return [
    ...samples.rows({ ...shape, figure: 'ms', section: 'time', unit: 'ms', against: COPIES }),
    ...samples.rows({ ...shape, figure: 'cpuMs', section: 'CPU time', unit: 'ms', against: COPIES }),
    ...samples.rows({
      ...shape,
      figure: 'mb',
      section: 'memory above bare workers',
      unit: 'MB',
      against: COPIES,
    }),
    ...LOOPS.flatMap((row) => samples.rows({ ...field, figure: row, row, against: 'plain objects' })),
  ]
}

async function inProcess(contender: string, records: number): Promise<Shared> {
  const file = `${DIST_FOLDER}/tables/share/process.js`
  const words = ['--expose-gc', file, contender, String(records)]
  const { stdout } = await promisify(execFile)(process.execPath, words)
  return JSON.parse(stdout) as Shared
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const most = (bar: string, traits: Partial<Row>, limit: number): Verdict =>
    judge(bar, [findRow(rows, { ...OWN, ...traits })], ({ median, unit }) => [
      `${median.toFixed(1)} ${unit}`,
      median <= limit,
    ])
  return [
    most('four threads read all records within 600 ms', { section: 'time' }, 600),
    most('at most 90 MB above four bare workers', { section: 'memory above bare workers' }, 90),
    most('a number takes at most 5 ns', { section: 'a field', row: 'five numbers' }, 5),
    most('also of views that are kept', { section: 'a field', row: 'one number of 64 views' }, 5),
  ]
}

export default {
  name: 'share',
  title: 'A large read-only value in four threads',
  definitions: {
    time: 'From the records of the main thread until four threads have read them: `store.share`, four calls.',
    'CPU time': 'The same, of the whole process.',
    'memory above bare workers':
      'Resident memory after that, without the records, above a process with four workers that do nothing.',
    'a field': 'CPU time of a read of one field in a warm loop over all records, the best of 15 passes.',
  },
  parameters: {
    records: { value: 200_000, quick: 50_000, doc: 'records' },
    rounds: { value: 7, quick: 1, doc: 'processes of each contender' },
  },
  run,
  verdicts,
} satisfies Table
