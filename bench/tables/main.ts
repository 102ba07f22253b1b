/**
 * Table `main`: a call from a worker to the main thread, by `zone.main` and by a message each way.
 *
 * Each contender is a process; their slices take turns.
 */
import { Child, nodeCommand } from '../harness/child.ts'
import { SPINNING } from '../harness/conditions.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import type { Calls, CallsFound } from './main/process.ts'

const RIVAL = 'postMessage'
const CONTENDERS = ['corespun', RIVAL]

async function run(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const order: Calls = { calls: context.number('calls') }
  const children = new Map<string, Child>()
  try {
    for (const contender of CONTENDERS) {
      const command = nodeCommand('tables/main/process.js', contender)
      children.set(contender, await Child.start(contender, [...SPINNING.prefix, ...command]))
    }
    for (let round = 0; round <= context.number('rounds'); round += 1) {
      for (const contender of shuffled(CONTENDERS, round)) {
        context.progress(`round ${round}: ${contender}`)
        const found = await (children.get(contender) as Child).order<CallsFound>(order)
        // The first slice compiles.
        if (round > 0) samples.add(contender, { ...found })
      }
    }
  } finally {
    await Promise.all([...children.values()].map((child) => child.end()))
  }
  const shape = {
    section: 'sequential',
    condition: SPINNING.name,
    threads: 1,
    unit: 'µs',
    better: 'lower',
    against: RIVAL,
  } as const
  return [
    ...samples.rows({ ...shape, row: 'p50', figure: 'p50', cpu: 'cpuUs' }),
    ...samples.rows({ ...shape, row: 'p99', figure: 'p99' }),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (contender: string): Row | undefined => findRow(rows, { row: 'p50', contender })
  const bar = 'a call to the main thread takes no longer than a message each way'
  return [judgeRatio(bar, [of('corespun'), of(RIVAL)], (times) => times <= 1)]
}

export default {
  name: 'main',
  title: 'A call from a worker to the main thread',
  definitions: {
    sequential:
      'One call after the other from one worker, of a function that adds one: p50 and p99 of a slice, ' +
      'median over rounds.',
  },
  parameters: {
    calls: { value: 20_000, quick: 2000, doc: 'calls of a slice' },
    rounds: { value: 11, quick: 3, doc: 'slices of each contender, behind one that compiles' },
  },
  run,
  verdicts,
} satisfies Table
