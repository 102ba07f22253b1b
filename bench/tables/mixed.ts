/**
 * Table `mixed`: payloads of many kinds and shapes in one process, warm and after its first 100 values.
 *
 * Corespun writes in process mode into memory it was given, as a zone does. Each row is compared with what
 * carries its values best: JSON, cbor-x where JSON cannot, one copy where the value is bytes alone.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { geometricMean } from '../harness/stats.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, judgeAhead } from '../harness/verdicts.ts'
import { CBOR, CLONE, CONTENDERS, OWN, rivalOf } from './mixed/contenders.ts'
import { GAP_DEFINITION, gapRows, type Times } from './mixed/gap.ts'
import { largeRows, largeVerdicts, type LargeOrder, type LargeSamples } from './mixed/large.ts'
import type { MixedOrder, MixedSamples } from './mixed/measure.ts'
import { BYTES_LABEL, MIXED_PAYLOADS, RICH_LABELS } from './mixed/payloads.ts'
import { PUBLIC_PAYLOADS } from './mixed/public.ts'
import { JSON_NAME } from './transport/codecs.ts'

const WARM = 'warm'
const COLD = 'after 100 values'
const CONDITIONS = [WARM, COLD]
const DIRECTIONS = ['encode', 'decode'] as const
const ROUND_TRIP = 'round trip'

async function run(context: Context): Promise<Row[]> {
  const found = [
    [WARM, await warm(context)],
    [COLD, await cold(context)],
  ] as const
  return [
    ...found.flatMap(([condition, samples]) => rowsOf(samples, condition)),
    ...found.flatMap(([condition, samples]) => gapOf(samples, condition)),
    ...largeRows(await large(context)),
  ]
}

/** Rounds spread over several processes: see table `transport`. */
async function warm(context: Context): Promise<MixedSamples[]> {
  const rounds = context.number('rounds')
  const processes = Math.min(context.number('processes'), rounds)
  const found: MixedSamples[] = []
  for (let process = 0; process < processes; process += 1) {
    context.progress(`mixed, warm: process ${process + 1} of ${processes}`)
    const before = Math.round((rounds * process) / processes)
    const share = Math.round((rounds * (process + 1)) / processes) - before
    const order: MixedOrder = { rounds: share, before, sliceMs: context.number('slice-ms') }
    found.push(await inProcess('measure', order))
  }
  return found
}

/** Each contender in a process of its own in each round. */
async function cold(context: Context): Promise<MixedSamples[]> {
  const found: MixedSamples[] = []
  for (let round = 0; round < context.number('cold-rounds'); round += 1) {
    context.progress(`mixed, cold: round ${round + 1}`)
    for (const codec of shuffled(CONTENDERS, round))
      found.push(await inProcess('measure', { codec, rounds: 1, before: round, sliceMs: 0 }))
  }
  return found
}

/** Large values, in one process. */
async function large(context: Context): Promise<LargeSamples> {
  context.progress('mixed, large values')
  const order: LargeOrder = { rounds: context.number('rounds'), sliceMs: context.number('slice-ms') }
  return inProcess('large-process', order)
}

async function inProcess(program: 'measure', order: MixedOrder): Promise<MixedSamples>
async function inProcess(program: 'large-process', order: LargeOrder): Promise<LargeSamples>
async function inProcess(program: string, order: MixedOrder | LargeOrder): Promise<unknown> {
  const path = `${DIST_FOLDER}/tables/mixed/${program}.js`
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(order)], {
    maxBuffer: 1 << 26,
  })
  return JSON.parse(stdout) as unknown
}

function rowsOf(found: readonly MixedSamples[], condition: string): Row[] {
  return MIXED_PAYLOADS.flatMap((payload) => {
    const { label } = payload
    const samples = new Samples()
    for (const measured of found) {
      for (const [contender, { encode, decode, both }] of Object.entries(measured[label] ?? {})) {
        for (const ns of both ?? []) samples.add(contender, { [ROUND_TRIP]: ns / 1000 })
        for (const [round, ns] of (encode ?? []).entries()) {
          const [encodeUs, decodeUs] = [ns / 1000, decode![round] / 1000]
          samples.add(contender, { encode: encodeUs, decode: decodeUs, [ROUND_TRIP]: encodeUs + decodeUs })
        }
      }
    }
    const fixed = { row: label, condition, threads: 0, unit: 'µs', better: 'lower' } as const
    return [
      ...DIRECTIONS.flatMap((section) =>
        samples.rows({ ...fixed, figure: section, section, against: rivalOf(payload) }),
      ),
      ...samples.rows({ ...fixed, figure: ROUND_TRIP, section: ROUND_TRIP, against: CLONE }),
    ]
  })
}

function gapOf(found: readonly MixedSamples[], condition: string): Row[] {
  return DIRECTIONS.flatMap((row) => {
    const timesOf = (label: string): Times => {
      const of = (name: string) => found.flatMap((measured) => measured[label]?.[name]?.[row] ?? [])
      return { own: of(OWN), json: of(JSON_NAME) }
    }
    const pairs = PUBLIC_PAYLOADS.filter(({ isJson }) => isJson)
    const [replaced, published] = [pairs.map(({ replaces }) => replaces), pairs.map(({ label }) => label)]
    return gapRows({ row, condition }, replaced.map(timesOf), published.map(timesOf))
  })
}

/** Most of JSON's time that the geometric mean of all rows may take. */
const MEANS_MAX = {
  [WARM]: { encode: 0.6, decode: 0.4 },
  [COLD]: { encode: 1.2, decode: 1.2 },
} as const
/** Most of structuredClone's time that any row may take. */
const CLONE_MAX = 1.1
/** Most of the rival's time that single rows may take, warm. */
const ROWS_MAX: readonly (readonly [row: string, section: (typeof DIRECTIONS)[number], most: number])[] = [
  ['one text of 40 characters', 'encode', 1.2],
  ['one character beyond Latin-1', 'encode', 1.5],
  ['log record, optional fields', 'encode', 1],
  ['dictionary of 200 numbers', 'encode', 1],
  ['dictionary of 200 numbers', 'decode', 1],
  ['dictionary of 200 ids', 'encode', 1],
  ['dictionary of 200 ids', 'decode', 1],
  ['outline of 1,000 points', 'encode', 0.6],
  [BYTES_LABEL, 'encode', 1.2],
  [BYTES_LABEL, 'decode', 1.2],
]

function verdicts(rows: readonly Row[]): Verdict[] {
  const means = ([WARM, COLD] as const).flatMap((condition) =>
    DIRECTIONS.map((section) => mean(rows, { section, condition }, MEANS_MAX[condition][section])),
  )
  return [
    ...means,
    ...CONDITIONS.map((condition) => besideClone(rows, condition)),
    ...ROWS_MAX.map((bar) => single(rows, bar)),
    besideCbor(rows),
    ...largeVerdicts(rows),
  ]
}

function mean(rows: readonly Row[], chosen: Pick<Row, 'section' | 'condition'>, most: number): Verdict {
  const replaced = PUBLIC_PAYLOADS.map(({ replaces }) => replaces)
  const labels = MIXED_PAYLOADS.filter(({ isJson, label }) => isJson && !replaced.includes(label)).map(
    ({ label }) => label,
  )
  const ratios = labels.flatMap((row) => {
    const ratio = findRow(rows, { ...chosen, row, contender: OWN })?.ratio
    return ratio === undefined ? [] : [ratio.median]
  })
  const bar = `${chosen.section}, ${chosen.condition}: geometric mean ≤ ${most} × JSON`
  if (ratios.length < labels.length)
    return { bar, measured: `${ratios.length} of ${labels.length} payloads`, holds: undefined }
  const value = geometricMean(ratios)
  return { bar, measured: value.toFixed(3), holds: value <= most }
}

function besideClone(rows: readonly Row[], condition: string): Verdict {
  const theirs = rows.filter(
    (row) => row.condition === condition && row.contender === CLONE && row.section === ROUND_TRIP,
  )
  return judgeAhead(
    `${condition}: on no row more than ${CLONE_MAX} × structuredClone`,
    theirs,
    ({ row, section }) => findRow(rows, { row, section, condition, contender: OWN }),
    ({ row }) => row,
    CLONE_MAX,
  )
}

function single(rows: readonly Row[], [row, section, most]: (typeof ROWS_MAX)[number]): Verdict {
  const rival = rivalOf(MIXED_PAYLOADS.find(({ label }) => label === row)!)
  const ratio = findRow(rows, { row, section, condition: WARM, contender: OWN })?.ratio
  return judge<[number]>(`${section} of ${row}: ≤ ${most} × ${rival}`, [ratio?.median], (median) => [
    median.toFixed(2),
    median <= most,
  ])
}

function besideCbor(rows: readonly Row[]): Verdict {
  const theirs = rows.filter(
    ({ row, section, condition, contender }) =>
      contender === CBOR && condition === WARM && section !== ROUND_TRIP && RICH_LABELS.includes(row),
  )
  return judgeAhead(
    `${WARM}: ahead of cbor-x on dates, sets and maps`,
    theirs,
    ({ row, section, condition }) => findRow(rows, { row, section, condition, contender: OWN }),
    ({ row, section }) => `${section} of ${row}`,
  )
}

const table: Table = {
  name: 'mixed',
  title: 'Values of many kinds and shapes in one process',
  definitions: {
    encode:
      'µs per object over 64 objects of different content, every other one made by JSON.parse. `warm`: ' +
      'after all payloads have passed through all contenders in shuffled order; `after 100 values`: 8 ' +
      'objects of each payload in a new process whose first 100 values were of all payloads. corespun ' +
      'writes into memory it was given, as a zone does; `one copy` is what the copy of the bytes takes.',
    decode: 'µs per object, the same objects.',
    'round trip': 'Both directions added, µs; structuredClone only has this one.',
    gap: GAP_DEFINITION,
    'large arrays, encode':
      'µs per 1,000 elements of one array, again and again, in a process of its own. All objects ' +
      'of a value are compared by identity, so one that occurs twice arrives as one.',
    'bytes without a copy':
      "µs of decode(frame, { bytes: 'view' }), and of a Uint8Array that is moved into a frame and out of " +
      'it, again and again. There is no rival: it is compared with itself.',
  },
  parameters: {
    rounds: { value: 15, quick: 3, doc: 'rounds in which all contenders take their turn, warm' },
    processes: { value: 3, quick: 1, doc: 'processes over which those rounds are spread' },
    'slice-ms': { value: 2, quick: 1, doc: "length of one contender's turn" },
    'cold-rounds': { value: 15, quick: 3, doc: 'new processes of each contender' },
  },
  run,
  verdicts,
}

export default table
