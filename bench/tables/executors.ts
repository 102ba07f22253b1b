/**
 * Table `executors`: what each executor is for, compared with the common pools for Node.
 *
 * Bursts and single calls show what an executor costs; skewed work shows what forking is worth; joins show
 * how well one task spreads. Every answer is checked.
 */
import { stage } from '../contenders/work.ts'
import { type Child, inTurn, withChildren } from '../harness/child.ts'
import { type Condition, SPINNING } from '../harness/conditions.ts'
import { type Figures, Samples } from '../harness/rounds.ts'
import { type Context, type Row, type Table, type Verdict, chosenOf, findRow } from '../harness/table.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'

const CORESPUN = ['corespun', 'corespun-work-stealing', 'corespun-blocking', 'corespun-cached']
/** The thread itself as a zone: only where calls are empty, since it has no workers. */
const NODE = 'corespun-node'
const OTHERS = ['piscina', 'tinypool', 'workerpool', 'poolifier']
/**
 * Not in the skewed section: its workers look for work to steal after 100 ms, doubled with each task they
 * have stolen in a row, so calls at a steady rate wait in its queues for longer than a job may take.
 */
const STEALING = 'poolifier-stealing'
const condition: Condition = SPINNING
const THREADS = 2
/** Skewed work: one call in so many takes so many times as long. */
const [DEARER, ONE_IN] = [100, 100] as const

/** Rows of the endless loops, and what the job calls their figures. */
const ENDLESS_FIGURES = [
  ['its thread has ended', 'endedMs'],
  ['the next task is answered', 'nextMs'],
] as const

const SECTIONS: Readonly<Record<string, (context: Context) => Promise<Row[]>>> = {
  'single calls': single,
  bursts,
  skewed,
  joins,
  'endless loops': endless,
}

function pools(context: Context, besides: readonly string[] = []): string[] {
  const chosen = context.text('contenders')
  return chosen === 'all' ? [...CORESPUN, ...OTHERS, ...besides] : chosen.split(',')
}

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  for (const section of chosenOf(context, 'sections', Object.keys(SECTIONS))) {
    context.progress(`section ${section}`)
    rows.push(...(await SECTIONS[section](context)))
  }
  return rows
}

/** The figures of all rounds, in which each pool takes its turn; the first, -1, warms up and is not kept. */
async function sampled(
  context: Context,
  contenders: readonly string[],
  rounds: number,
  slice: (child: Child, round: number) => Promise<Figures>,
): Promise<Samples> {
  const samples = new Samples()
  const setting = { condition, threads: THREADS, skip: context.skip }
  await withChildren(contenders, setting, async (children) => {
    for (let round = -1; round < rounds; round += 1) {
      await inTurn(children, samples, context, async (child) => {
        const figures = await slice(child, round)
        if (round >= 0) samples.add(child.contender, figures)
      })
    }
  })
  return samples
}

async function single(context: Context): Promise<Row[]> {
  const sliceMs = context.number('slice-ms')
  const samples = await sampled(
    context,
    pools(context, [NODE, STEALING]),
    context.number('rounds'),
    (child) => child.do('sequential', { form: 'named', sliceMs }),
  )
  const shape = { section: 'single calls', condition: condition.name, threads: THREADS, unit: 'µs' } as const
  const figures = [
    ['p50', 'p50Us'],
    ['p99', 'p99Us'],
  ] as const
  return figures.flatMap(([row, figure]) =>
    samples.rows({ ...shape, row, figure, better: 'lower', against: 'piscina' }),
  )
}

async function bursts(context: Context): Promise<Row[]> {
  const order = { calls: 16, bursts: context.number('bursts') }
  const rounds = context.number('rounds')
  const samples = await sampled(context, pools(context, [NODE, STEALING]), rounds, (child) =>
    child.do('burst', order),
  )
  const shape = { condition: condition.name, threads: THREADS, unit: 'µs', better: 'lower' } as const
  return samples.rows({ ...shape, section: 'bursts', row: '16 at once', figure: 'us', against: 'piscina' })
}

/** Time between two skewed calls, so that their work is that share of what the workers can do. */
function skewedGapUs(context: Context): number {
  const input = { turns: context.number('turns'), payload: 0 }
  const times: number[] = []
  for (let turn = 0; turn < 300; turn += 1) {
    const start = performance.now()
    stage(input)
    times.push((performance.now() - start) * 1000)
  }
  const cheapUs = times.slice(100).sort((a, b) => a - b)[100]
  return (cheapUs * (1 + (DEARER - 1) / ONE_IN)) / ((THREADS * context.number('load-percent')) / 100)
}

async function skewed(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  const gapUs = skewedGapUs(context)
  context.progress(`skewed: a call each ${gapUs.toFixed(0)} µs`)
  for (const forks of [true, false]) {
    const order = {
      calls: context.number('skewed-calls'),
      gapUs,
      turns: context.number('turns'),
      dearer: DEARER,
      oneIn: ONE_IN,
      forks,
    }
    const rounds = context.number('skewed-rounds')
    const samples = await sampled(context, pools(context), rounds, (child, round) => {
      context.progress(`skewed, ${forks ? 'forked' : 'whole'}: round ${round + 1}, ${child.contender}`)
      return child.do('skewed', { ...order, warmsUp: round < 0 })
    })
    const shape = { section: 'skewed', condition: condition.name, threads: THREADS, unit: 'µs' } as const
    const how = forks ? 'dear ones fork' : 'dear ones whole'
    const figures = [
      ['p50', 'p50Us'],
      ['p99', 'p99Us'],
      ['p99 of the cheap ones', 'cheapP99Us'],
    ] as const
    for (const [row, figure] of figures) {
      rows.push(
        ...samples.rows({ ...shape, row: `${how}, ${row}`, figure, better: 'lower', against: 'corespun' }),
      )
    }
  }
  return rows
}

async function joins(context: Context): Promise<Row[]> {
  const jobs = [
    ['fibonacci', { n: 32, cutOff: 16 }, 2178309],
    ['quicksort', { count: context.number('numbers'), seed: 7 }, true],
  ] as const
  const samples = new Samples()
  const setting = { condition, skip: context.skip }
  const contenders = ['corespun-work-stealing']
  await withChildren(contenders, { ...setting, threads: 1 }, (one) =>
    withChildren(contenders, { ...setting, threads: 2 }, async (two) => {
      for (let round = -3; round < context.number('join-rounds'); round += 1) {
        for (const [name, input, expected] of jobs) {
          for (const [workers, child] of [
            ...one.map((each) => [1, each]),
            ...two.map((each) => [2, each]),
          ] as const) {
            const { ms } = await (child as (typeof one)[number]).do('joins', { name, input, expected })
            if (round >= 0) samples.add(`${workers} workers`, { [name]: ms })
          }
        }
      }
    }),
  )
  const shape = { section: 'joins', condition: condition.name, unit: 'ms', better: 'lower' } as const
  return jobs.flatMap(([name]) =>
    samples.rows({ ...shape, row: name, figure: name, threads: 0, against: '2 workers' }).map((row) => ({
      ...row,
      threads: row.contender === '1 workers' ? 1 : 2,
      contender: 'corespun-work-stealing',
    })),
  )
}

/** From the abort of a call that never ends, on the only worker, to its thread's end and the next answer. */
async function endless(context: Context): Promise<Row[]> {
  const graceMs = context.number('grace-ms')
  const contenders = pools(context).filter((name) => CORESPUN.includes(name))
  const samples = await sampled(context, contenders, context.number('endless-rounds'), async (child) => {
    const { endedMs, nextMs } = await child.do('abandon', { graceMs })
    return { endedMs: endedMs - graceMs, nextMs: nextMs - graceMs }
  })
  const shape = {
    section: 'endless loops',
    condition: condition.name,
    threads: 1,
    unit: 'ms',
    better: 'lower',
    note: `past graceMs of ${graceMs}`,
  } as const
  const median = ENDLESS_FIGURES.flatMap(([row, figure]) => samples.rows({ ...shape, row, figure }))
  const slowest = new Samples()
  for (const contender of samples.contenders) {
    for (const [, figure] of ENDLESS_FIGURES)
      slowest.add(contender, { [figure]: Math.max(...samples.of(contender, figure)) })
  }
  const worst = ENDLESS_FIGURES.flatMap(([row, figure]) =>
    slowest.rows({ ...shape, row: `${row}, slowest`, figure }),
  )
  return [...median, ...worst]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return [...burstVerdicts(rows), ...skewedVerdicts(rows), ...joinVerdicts(rows), ...endlessVerdicts(rows)]
}

function burstVerdicts(rows: readonly Row[]): Verdict[] {
  return [...CORESPUN, NODE].map((contender) => {
    const pair = ['piscina', contender].map((name) => findRow(rows, { section: 'bursts', contender: name }))
    return judgeRatio(`16 at once on ${contender}: piscina takes ≥ 5 ×`, pair, (x) => x >= 5, 1)
  })
}

/**
 * The demand names no way to write a dear task, so both are judged: one that forks, and one that does not.
 */
function skewedVerdicts(rows: readonly Row[]): Verdict[] {
  return ['dear ones fork', 'dear ones whole'].map((how) => {
    const pair = ['corespun-work-stealing', 'corespun'].map((contender) =>
      findRow(rows, { section: 'skewed', row: `${how}, p99`, contender }),
    )
    return judgeRatio(`skewed work, ${how}: p99 of work-stealing ≤ 0.5 × fixed`, pair, (x) => x <= 0.5)
  })
}

function joinVerdicts(rows: readonly Row[]): Verdict[] {
  return ['fibonacci', 'quicksort'].map((row) => {
    const pair = [1, 2].map((threads) => findRow(rows, { section: 'joins', row, threads }))
    return judgeRatio(`${row} by joins: two workers ≥ 1.8 × one`, pair, (x) => x >= 1.8)
  })
}

/** Judged by the slowest round of the slowest executor. */
function endlessVerdicts(rows: readonly Row[]): Verdict[] {
  return ENDLESS_FIGURES.map(([row]) => {
    const found = rows.filter((each) => each.section === 'endless loops' && each.row === `${row}, slowest`)
    const slowest = found.length === 0 ? undefined : Math.max(...found.map(({ median }) => median))
    return judge(`a cancelled endless loop: ${row} ≤ graceMs + 100 ms`, [slowest], (ms) => [
      `graceMs + ${ms.toFixed(0)} ms at the slowest`,
      ms <= 100,
    ])
  })
}

export default {
  name: 'executors',
  title: 'Executors: bursts, skewed work, joins',
  definitions: {
    'single calls': 'One call of an empty function after the other, two workers: p50 and p99 of a slice.',
    bursts:
      'Sixteen calls of an empty function at once, awaited together, again and again: time of one burst.',
    skewed:
      'Calls at a steady rate, --load-percent of what two workers can do; one call in a hundred takes a ' +
      'hundred times as long. Time from when a call was due to its answer. "fork": dear calls make ' +
      'a task of their own zone of each hundredth of their work, where the pool can; others, and "whole", ' +
      'do not.',
    joins:
      'One task: Fibonacci(32) by joins down to 16, and quicksort of shared memory, on one and two workers.',
    'endless loops':
      'On a zone of one worker, a call that loops for ever is aborted while another one waits: time from ' +
      "graceMs after the abort to the end of the worker's thread, and to the other's answer by the worker " +
      'that replaces it. ' +
      '"slowest": of all rounds.',
  },
  parameters: {
    sections: { value: 'all', doc: 'which sections, by comma' },
    contenders: { value: 'all', doc: 'which pools, by comma' },
    rounds: { value: 7, quick: 2, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 100, quick: 40, doc: 'length of a latency slice' },
    bursts: { value: 1000, quick: 200, doc: 'bursts in a slice' },
    'skewed-rounds': { value: 7, quick: 1, doc: 'rounds of the skewed section' },
    'skewed-calls': { value: 5000, quick: 2000, doc: 'calls of one slice of it' },
    'load-percent': {
      value: 85,
      doc: 'what the calls of the skewed section ask of the two workers; with little more, calls pile up',
    },
    turns: { value: 50_000, doc: 'turns of the loop of a cheap one, 1.5 to 3 ns each' },
    numbers: { value: 2_000_000, doc: 'numbers that are sorted' },
    'grace-ms': { value: 200, doc: 'graceMs of the zones of the endless loops' },
    'endless-rounds': { value: 15, quick: 3, doc: 'rounds of the endless loops' },
    'join-rounds': { value: 11, quick: 3, doc: 'rounds of the joins' },
  },
  run,
  verdicts,
} satisfies Table
