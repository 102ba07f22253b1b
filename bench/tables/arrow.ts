/**
 * Table `arrow`: the 14 methods of the seed, and its two programs, beside plain code, Effect 4, fp-ts and
 * promises.
 *
 * One thread, and two that do the same at the same moment. The methods' rival is zio-arrow on the JVM, which
 * cannot run here: its figures are those of the anchors, measured on such a machine, composing without ever
 * running.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { BenchError } from '../harness/errors.ts'
import { DIST_FOLDER } from '../harness/paths.ts'
import { figure } from '../harness/print.ts'
import { Samples } from '../harness/rounds.ts'
import { type Context, type Row, type Table, type Verdict, chosenOf, findRow } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { METHODS, type Method, bytesPerOperation, loopsOf, rate } from './arrow/methods.ts'
import {
  type Compute,
  type Programs,
  COMPUTES,
  bytesPerRun,
  computePrograms,
  filePrograms,
  perMs,
} from './arrow/programs.ts'
import { Threads } from './arrow/thread.ts'
import { type Tier, paysAfter, warmNs } from './arrow/tiers.ts'

const PREBUILT_MIN = 120
const CONDITION = 'one thread'
const CONDITION_TWO = 'two threads'
const TWO = 2
/** Arrows of one part have no code of their own. */
const TIERED = METHODS.filter(({ label }) => !['id', 'left', 'lift', 'right'].includes(label))
/** Rows of the seed by who answers them here; Effect in the row of ZIO. */
const CELLS = { plain: 'plainBench', corespun: 'arrowBench', 'effect 4': 'zioBench' } as const

const SECTIONS = ['methods', 'tiers', ...COMPUTES, 'files']

async function run(context: Context): Promise<Row[]> {
  const sections = chosenOf(context, 'sections', SECTIONS)
  const files = await filePrograms()
  const threads = await Threads.start(TWO)
  const measures: Record<string, () => Promise<Row[]>> = {
    methods: () => methods(context, threads),
    tiers: () => tiers(context),
    files: () => programs(context, 'files', files.programs, threads),
  }
  for (const name of COMPUTES)
    measures[name] = async () => programs(context, name, await computePrograms(name), threads)
  try {
    const rows: Row[] = []
    for (const section of sections) rows.push(...(await measures[section]()))
    return rows
  } finally {
    await threads.end()
    files.remove()
  }
}

async function methods(context: Context, threads: Threads): Promise<Row[]> {
  const samples = new Samples()
  const loops = METHODS.map((method) => ({ method, loops: loopsOf(method) }))
  const sliceMs = context.number('slice-ms')
  for (let round = 0; round < context.number('rounds'); round += 1)
    for (const {
      method: { label },
      loops: both,
    } of loops) {
      context.progress(`arrow: ${label}, round ${round + 1}`)
      samples.add('corespun', {
        [`${label} composed`]: rate(both.composed, sliceMs),
        [`${label} prebuilt`]: rate(both.prebuilt, sliceMs),
        [`${label} composed, bytes`]: bytesPerOperation(both.composed),
        [`${label} prebuilt, bytes`]: bytesPerOperation(both.prebuilt),
        [`${label} composed, two`]: await threads.slice({ label, loop: 'composed', sliceMs }),
        [`${label} prebuilt, two`]: await threads.slice({ label, loop: 'prebuilt', sliceMs }),
      })
    }
  return METHODS.flatMap((method) => rowsOfMethod(samples, method))
}

function rowsOfMethod(samples: Samples, method: Method): Row[] {
  const { label } = method
  const row = nameOf(method)
  const one = { condition: CONDITION, threads: 0, row } as const
  const two = { condition: CONDITION_TWO, threads: TWO, row } as const
  const fast = { unit: 'million/s', better: 'higher' } as const
  const small = { ...one, unit: 'B', better: 'lower' } as const
  const cell = { corespun: `arrow/api/${label}/ops` }
  const made = 'composed and run'
  return [
    samples.rows({ ...one, ...fast, section: made, figure: `${label} composed`, seeds: cell }),
    samples.rows({ ...two, ...fast, section: made, figure: `${label} composed, two` }),
    samples.rows({ ...one, ...fast, section: 'prebuilt', figure: `${label} prebuilt` }),
    samples.rows({ ...two, ...fast, section: 'prebuilt', figure: `${label} prebuilt, two` }),
    samples.rows({ ...small, section: `bytes, ${made}`, figure: `${label} composed, bytes` }),
    samples.rows({ ...small, section: 'bytes, prebuilt', figure: `${label} prebuilt, bytes` }),
  ].flat()
}

/** A method's label and, where it is another, the operation that is meant. */
function nameOf({ label, operation }: Method): string {
  return label === operation ? label : `${label} (${operation})`
}

/** Cold and warm: each sample two processes, one with code from the start, one that never has any. */
async function tiers(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const path = `${DIST_FOLDER}/tables/arrow/tiers.js`
  const forbidden = '--disallow-code-generation-from-strings'
  const ran = async (label: string, ...words: readonly string[]): Promise<Tier> =>
    JSON.parse(
      (await promisify(execFile)(process.execPath, [...words.slice(1), path, label, words[0]])).stdout,
    )
  for (let round = 0; round < context.number('processes'); round += 1)
    for (const { label } of TIERED) {
      context.progress(`arrow: ${label} from its first run on, process ${round + 1}`)
      const [code, closures] = [await ran(label, 'code'), await ran(label, 'closures', forbidden)]
      if (code.sum !== closures.sum) {
        const [got, expected] = [String(code.sum), String(closures.sum)]
        throw new BenchError('WRONG_ANSWER', { contender: 'corespun, code', work: label, got, expected })
      }
      samples.add('corespun, closures', {
        [`${label} 1`]: closures.coldNs,
        [`${label} warm`]: warmNs(closures),
      })
      samples.add('corespun, code', {
        [`${label} 1`]: code.coldNs,
        [`${label} warm`]: warmNs(code),
        [`${label} pays`]: paysAfter(code, closures),
      })
    }
  const shape = { condition: 'one process each', threads: 0, better: 'lower' } as const
  return TIERED.flatMap((method) => {
    const ns = { ...shape, row: nameOf(method), unit: 'ns' } as const
    return [
      samples.rows({ ...ns, section: 'cold: the first run', figure: `${method.label} 1` }),
      samples.rows({ ...ns, section: 'warm: a run', figure: `${method.label} warm` }),
      samples.rows({ ...ns, unit: 'runs', section: 'code pays after', figure: `${method.label} pays` }),
    ].flat()
  })
}

async function programs(
  context: Context,
  section: Compute | 'files',
  contenders: Programs,
  threads: Threads,
): Promise<Row[]> {
  const samples = new Samples()
  const expected = await contenders['plain']()
  const sliceMs = context.number('slice-ms')
  for (let round = -1; round < context.number('rounds'); round += 1)
    for (const [contender, program] of Object.entries(contenders)) {
      const received = await program()
      if (received !== expected)
        throw new BenchError('WRONG_ANSWER', {
          ...{ contender, work: section },
          ...{ got: String(received), expected: String(expected) },
        })
      context.progress(`arrow: ${section}, ${contender}, round ${round + 1}`)
      const one = await perMs(program, sliceMs)
      const two = await threads.slice({ section, contender, sliceMs })
      // The first round warms up.
      if (round >= 0) samples.add(contender, { one, two, bytes: await bytesPerRun(program) })
    }
  const isSeeds = section === 'compute' || section === 'files'
  const seeds = Object.fromEntries(
    Object.entries(isSeeds ? CELLS : {}).map(([contender, cell]) => [
      contender,
      `arrow/${section}/${cell}/ops`,
    ]),
  )
  const [one, two] = [
    { condition: CONDITION, threads: 0 },
    { condition: CONDITION_TWO, threads: TWO },
  ]
  const fast = { unit: 'thousand/s', better: 'higher', row: section, against: 'plain' } as const
  return [
    ...samples.rows({ ...one, ...fast, section, figure: 'one', seeds }),
    ...samples.rows({ ...two, ...fast, section, figure: 'two' }),
    ...samples.rows({
      ...one,
      section: 'bytes of a run',
      row: section,
      figure: 'bytes',
      unit: 'B',
      better: 'lower',
    }),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const medianOf = (traits: Partial<Row>): number | undefined =>
    findRow(rows, { contender: 'corespun', condition: CONDITION, ...traits })?.median
  const atLeast = (bar: string, measured: number | undefined, least: number): Verdict =>
    judge(bar, [measured], (value) => [figure(value), value >= least])
  const against = (section: string, rival: string, least: number): Verdict => {
    const [ours, theirs] = [medianOf({ section }), medianOf({ section, contender: rival })]
    const ratio = ours === undefined || theirs === undefined ? undefined : ours / theirs
    return atLeast(`${section}: ${least} × ${rival}`, ratio, least)
  }
  const bars = (method: Method): Verdict[] => {
    const [{ label, rival }, row] = [method, nameOf(method)]
    const made = medianOf({ section: 'composed and run', row })
    const prebuilt = medianOf({ section: 'prebuilt', row })
    return [
      atLeast(`${row} composed and run: more than ${rival} million/s`, made, rival),
      ...(label === 'lift'
        ? []
        : [atLeast(`${row} prebuilt: ${PREBUILT_MIN} million/s`, prebuilt, PREBUILT_MIN)]),
    ]
  }
  return [
    ...METHODS.flatMap(bars),
    ...COMPUTES.flatMap((name) => [
      against(name, 'plain', 1),
      against(name, 'effect 4', 3.3),
      against(name, 'fp-ts', 1.6),
    ]),
    against('files', 'plain', 0.97),
  ]
}

export default {
  name: 'arrow',
  title: 'Arrows: the 14 methods of the seed, its compute and its files',
  definitions: {
    'composed and run':
      'Each operation makes a new arrow of two of 64 and runs it on one of 64 inputs; results are added ' +
      'up. lift is constructed only, as in the seed. Unlike there, the functions are really called.',
    prebuilt: '64 arrows made before, run until compiled, take turns on 64 inputs.',
    'bytes, composed and run': 'Heap allocated per operation, median of slices without a collection.',
    'bytes, prebuilt': 'The same of prebuilt arrows.',
    'cold: the first run':
      'The first arrow of a new process: made, run once. code: generated before; closures: forbidden.',
    'warm: a run': 'One arrow, mean of the last half of a million runs in a row.',
    'code pays after':
      'Runs of a new arrow, generating included, after which the process with code has taken less time in ' +
      'all than the other. Corespun itself is warm. A power of two.',
    'bytes of a run': 'Heap allocated by one run of a program, median of runs without a collection.',
    compute:
      '500 stages with factorials of 8..12, results kept, then summed. ' +
      'All chains but promises are built once and begin with an empty array, which their stages push to.',
    'compute-wide':
      'The same with factorials of 0..20, so that the results are small integers, large ones and doubles.',
    'compute-inline':
      'The same with an array of the right size, in which stages put their results, as `map` makes it for ' +
      'the plain program.',
    files: 'Ten files with a number each, made with a fixed seed: read synchronously, factorial, sum.',
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    rounds: { value: 11, quick: 2, doc: 'rounds in which all take their turn' },
    'slice-ms': { value: 60, quick: 15, doc: 'length of one slice' },
    processes: { value: 7, quick: 1, doc: 'processes of each kind for cold and warm' },
  },
  run,
  verdicts,
} satisfies Table
