/**
 * Table `arrow`: the 14 methods of the seed, and its two programs, beside plain code, Effect 4, fp-ts and
 * promises.
 *
 * All of it is one thread. The methods' rival is zio-arrow on the JVM, which cannot run here: its figures are
 * those of the anchors, measured on such a machine, composing without ever running.
 */
import { BenchError } from '../harness/errors.ts'
import { Samples } from '../harness/rounds.ts'
import { type Context, type Row, type Table, type Verdict, findRow } from '../harness/table.ts'
import { METHODS, bytesPerOperation, loopsOf, rate } from './arrow/methods.ts'
import { computePrograms, filePrograms, type Program } from './arrow/programs.ts'

const PREBUILT_MIN = 120
const CONDITION = 'one thread'

async function run(context: Context): Promise<Row[]> {
  const rows = methods(context)
  rows.push(...(await programs(context, 'compute', await computePrograms())))
  const { programs: files, remove } = await filePrograms()
  try {
    rows.push(...(await programs(context, 'files', files)))
  } finally {
    remove()
  }
  return rows
}

function methods(context: Context): Row[] {
  const samples = new Samples()
  const loops = METHODS.map((method) => ({ method, loops: loopsOf(method) }))
  for (let round = 0; round < context.number('rounds'); round += 1)
    for (const { method, loops: both } of loops) {
      context.say(`arrow: ${method.label}, round ${round + 1}`)
      samples.add('skein', {
        [`${method.label} composed`]: rate(both.composed, context.number('slice-ms')),
        [`${method.label} prebuilt`]: rate(both.prebuilt, context.number('slice-ms')),
        [`${method.label} bytes`]: bytesPerOperation(both.composed),
      })
    }
  const shape = { condition: CONDITION, threads: 0 } as const
  const fast = { ...shape, unit: 'million/s', better: 'higher' } as const
  return METHODS.flatMap(({ label, operation }) => {
    const row = label === operation ? label : `${label} (${operation})`
    const cell = { skein: `arrow/api#${label}.ops` }
    return [
      ...samples.rows({
        ...fast,
        section: 'composed and run',
        row,
        figure: `${label} composed`,
        seeds: cell,
      }),
      ...samples.rows({ ...fast, section: 'prebuilt', row, figure: `${label} prebuilt` }),
      ...samples.rows({
        ...{ ...shape, unit: 'B', better: 'lower' },
        ...{ section: 'bytes, composed and run', row, figure: `${label} bytes` },
      }),
    ]
  })
}

async function programs(
  context: Context,
  section: string,
  contenders: Readonly<Record<string, Program>>,
): Promise<Row[]> {
  const samples = new Samples()
  const expected = await contenders['plain']!()
  const names = Object.keys(contenders)
  for (let round = -1; round < context.number('rounds'); round += 1)
    for (const contender of names) {
      const program = contenders[contender] as Program
      const received = await program()
      if (received !== expected)
        throw new BenchError('WRONG_ANSWER', {
          contender,
          work: section,
          got: String(received),
          expected: String(expected),
        })
      context.say(`arrow: ${section}, ${contender}, round ${round + 1}`)
      const figure = await perSecond(program, context.number('slice-ms'))
      // The first round warms up.
      if (round >= 0) samples.add(contender, { ops: figure })
    }
  const shape = { condition: CONDITION, threads: 0, unit: 'thousand/s', better: 'higher' } as const
  return samples.rows({ ...shape, section, row: section, figure: 'ops', against: 'plain' })
}

async function perSecond(program: Program, sliceMs: number): Promise<number> {
  const startMs = performance.now()
  let count = 0
  for (;;) {
    for (let turn = 0; turn < 16; turn += 1) {
      const answer = program()
      if (typeof answer !== 'number') await answer
    }
    count += 16
    const ms = performance.now() - startMs
    if (ms >= sliceMs) return count / ms
  }
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const found: Verdict[] = []
  for (const { label, operation, rival } of METHODS) {
    const row = label === operation ? label : `${label} (${operation})`
    found.push(
      atLeast(
        `${row} composed and run: more than ${rival} million/s`,
        find(rows, 'composed and run', row),
        rival,
      ),
    )
    if (label !== 'lift')
      found.push(
        atLeast(`${row} prebuilt: ${PREBUILT_MIN} million/s`, find(rows, 'prebuilt', row), PREBUILT_MIN),
      )
  }
  const against = (section: string, rival: string, least: number): Verdict => {
    const [ours, theirs] = ['skein', rival].map((contender) => findRow(rows, { section, contender })?.median)
    const ratio = ours === undefined || theirs === undefined ? undefined : ours / theirs
    return atLeast(`${section}: ${least} × ${rival}`, ratio, least)
  }
  return [
    ...found,
    against('compute', 'plain', 1),
    against('compute', 'effect 4', 3.3),
    against('compute', 'fp-ts', 1.6),
    against('files', 'plain', 0.97),
  ]
}

function find(rows: readonly Row[], section: string, row: string): number | undefined {
  return findRow(rows, { section, row, contender: 'skein' })?.median
}

function atLeast(bar: string, measured: number | undefined, least: number): Verdict {
  if (measured === undefined) return { bar, measured: 'not measured', holds: undefined }
  return { bar, measured: measured.toPrecision(3), holds: measured >= least }
}

const table: Table = {
  name: 'arrow',
  title: 'Arrows: the 14 methods of the seed, its compute and its files',
  definitions: {
    'composed and run':
      'Each operation makes a new arrow of two of 64 and runs it on one of 64 inputs; results are added ' +
      'up. lift is constructed only, as in the seed. Unlike there, the functions are really called.',
    prebuilt: '64 arrows made before, run until compiled, take turns on 64 inputs.',
    'bytes, composed and run': 'Heap allocated per operation, median of slices without a collection.',
    compute:
      '500 stages with factorials of 8..12, results kept, then summed. ' +
      'All chains but promises are built once.',
    files: 'Ten files with a number each, made with a fixed seed: read synchronously, factorial, sum.',
  },
  parameters: {
    rounds: { value: 11, quick: 2, doc: 'rounds in which all take their turn' },
    'slice-ms': { value: 60, quick: 15, doc: 'length of one slice' },
  },
  run,
  verdicts,
}

export default table
