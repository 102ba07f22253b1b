/**
 * Table `cold`: the first values of a new process and of a new worker, and keys that never come back.
 *
 * Each contender has a process of its own in each round for pages, and one for each other kind of values; the
 * order changes with the round. What its module does when it is loaded is not counted, as it is for nobody.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { GAP_DEFINITION, gapRows, type Times } from './mixed/gap.ts'
import { JSON_NAME } from './transport/codecs.ts'
import type { First, FirstOrder, Part } from './cold/first.ts'

const CONTENDERS = [
  JSON_NAME,
  'structuredClone',
  'v8.serialize',
  'msgpackr',
  'cbor-x',
  'corespun, self-contained',
  'corespun',
]
const CONDITIONS = { 'new process': false, 'new worker': true } as const
const ROWS: Readonly<Record<Part, string>> = {
  first: 'first page of 20 users',
  later: 'pages 2 to 300',
  newKeys: '2,000 objects of 8 new keys, first pass',
  shapes: '2,000 objects of 398 shapes in turn, first pass',
  schemas: '500 definitions of a JSON schema, first pass',
  logs: '300 log records with optional fields, first pass',
  lockFiles: '20 lock files of 40 packages, first pass',
  npmLockFiles: '8 lock files of 40 npm packages, first pass',
  rows: 'a list of 5,000 rows, first pass',
  mediaTypes: 'a list of 2,500 media types, first pass',
}
/** Public data and what it replaces: the bars are those of the former, the gap is between both. */
const REPLACED: Readonly<Partial<Record<Part, Part>>> = {
  schemas: 'shapes',
  npmLockFiles: 'lockFiles',
  mediaTypes: 'rows',
}
/** What a process measures. */
const PROCESSES: readonly (readonly Part[])[] = [
  ['first', 'later'],
  ['newKeys'],
  ['shapes'],
  ['schemas'],
  ['logs'],
  ['lockFiles'],
  ['npmLockFiles'],
  ['rows'],
  ['mediaTypes'],
]
const DIRECTIONS = ['encode', 'decode'] as const

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  for (const [condition, isWorker] of Object.entries(CONDITIONS)) {
    const samples = new Samples()
    for (let round = 0; round < context.number('rounds'); round += 1) {
      context.progress(`cold, ${condition}: round ${round + 1}`)
      for (const codec of shuffled(CONTENDERS, round)) {
        const found: First = {}
        for (const parts of PROCESSES) Object.assign(found, await inProcess({ codec, isWorker, parts }))
        for (const part of Object.keys(ROWS) as Part[]) {
          const { encode, decode } = found[part]!
          samples.add(codec, {
            ...(encode === undefined ? {} : { [`${part} encode`]: encode, [`${part} decode`]: decode }),
            [`${part} round trip`]: (encode ?? 0) + decode,
          })
        }
      }
    }
    for (const [part, row] of Object.entries(ROWS)) {
      for (const section of [...DIRECTIONS, 'round trip']) {
        const figure = `${part} ${section}`
        const shape = { figure, section, row, condition, threads: 0, unit: 'µs', better: 'lower' } as const
        rows.push(...samples.rows({ ...shape, against: JSON_NAME }))
      }
    }
    rows.push(...gapOf(samples, condition))
  }
  return rows
}

function gapOf(samples: Samples, condition: string): Row[] {
  return DIRECTIONS.flatMap((row) => {
    const timesOf = (part: string): Times => {
      const [own, json] = ['corespun', JSON_NAME].map((name) => samples.of(name, `${part} ${row}`))
      return { own, json }
    }
    const [published, replaced] = [Object.keys(REPLACED), Object.values(REPLACED)]
    return gapRows({ row, condition }, replaced.map(timesOf), published.map(timesOf))
  })
}

async function inProcess(order: FirstOrder): Promise<First> {
  const path = `${DIST_FOLDER}/tables/cold/first.js`
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(order)])
  return JSON.parse(stdout) as First
}

/** Most times of JSON that each row may take. */
const BARS: Readonly<Partial<Record<Part, number>>> = {
  first: 3,
  later: 1.5,
  newKeys: 1.5,
  schemas: 1.5,
  logs: 1.5,
  npmLockFiles: 1.5,
  mediaTypes: 1.5,
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return (Object.entries(BARS) as [Part, number][]).flatMap(([part, most]) =>
    Object.keys(CONDITIONS).flatMap((condition) =>
      DIRECTIONS.map((section) => {
        const own = findRow(rows, { section, row: ROWS[part], condition, contender: 'corespun' })
        return {
          bar: `${section} of ${ROWS[part]}, ${condition}: ≤ ${most} × JSON`,
          measured: own?.ratio === undefined ? 'not measured' : own.ratio.median.toFixed(2),
          holds: own?.ratio === undefined ? undefined : own.ratio.median <= most,
        }
      }),
    ),
  )
}

export default {
  name: 'cold',
  title: 'The first values of a thread',
  definitions: {
    encode:
      'µs per value. Pages as in table `transport`, each of other content; objects of 8 keys that no ' +
      'other object has, and of 398 lists of 8 keys; log records, lock files and public data as in table ' +
      '`mixed`. A thread has written the first page before the others, and nothing before any other row. ' +
      '`new worker`: in a worker of a process that has done nothing else. corespun writes into memory it ' +
      'was given, as a zone does; `corespun, self-contained` is marshall, with bytes of its own.',
    decode: 'µs per value, the same ones, which are encoded a second time for it.',
    'round trip': 'Both added; structuredClone only has this one.',
    gap: GAP_DEFINITION,
  },
  parameters: { rounds: { value: 15, quick: 3, doc: 'processes of each contender and condition' } },
  run,
  verdicts,
} satisfies Table
