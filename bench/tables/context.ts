/**
 * Table `context`: what a call costs more that takes something with it, and one that does not in a thread
 * where others do.
 *
 * Each kind is a process; their slices take turns, and the differences are those of a round.
 */
import { Child, nodeCommand } from '../harness/child.ts'
import { SPINNING } from '../harness/conditions.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { type Calls, type CallsFound, KINDS, type Kind } from './context/kinds.ts'

const NONE = 'nothing'
/** The most that a kind may cost more, in ns of CPU. */
const BARS: Partial<Record<Kind, number>> = { registered: 30, value: 300 }

async function run(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const kinds = chosenOf(context, 'kinds', KINDS) as readonly Kind[]
  const children = new Map<string, Child>()
  try {
    for (const kind of kinds) {
      const command = nodeCommand('tables/context/process.js', kind)
      children.set(kind, await Child.start(kind, [...SPINNING.prefix, ...command]))
    }
    const order: Calls = { calls: context.number('calls') }
    for (let round = 0; round <= context.number('rounds'); round += 1) {
      const found = new Map<string, CallsFound>()
      for (const kind of shuffled(kinds, round)) {
        context.progress(`round ${round}: ${kind}`)
        found.set(kind, await (children.get(kind) as Child).order<CallsFound>(order))
      }
      const without = found.get(NONE)?.cpuNs ?? Number.NaN
      // The first slices compile.
      if (round > 0)
        for (const [kind, { ns, cpuNs }] of found) samples.add(kind, { ns, cpuNs, more: cpuNs - without })
    }
  } finally {
    await Promise.all([...children.values()].map((child) => child.end()))
  }
  const shape = {
    section: 'a call',
    condition: SPINNING.name,
    threads: 1,
    unit: 'ns',
    better: 'lower',
  } as const
  return [
    ...samples.rows({ ...shape, row: 'time', figure: 'ns', against: NONE }),
    ...samples.rows({ ...shape, row: 'CPU', figure: 'cpuNs', against: NONE }),
    ...samples
      .rows({ ...shape, row: 'CPU more than with nothing', figure: 'more' })
      .filter(({ contender }) => contender !== NONE),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return Object.entries(BARS).map(([kind, ns]) => {
    const row = findRow(rows, { row: 'CPU more than with nothing', contender: kind })
    return judge<[Row]>(`${kind}: at most ${ns} ns of CPU more`, [row], ({ median }) => [
      `${median.toFixed(0)} ns`,
      median <= ns,
    ])
  })
}

export default {
  name: 'context',
  title: 'What calls take with them',
  definitions: {
    'a call':
      'Calls of a function with two arguments in a burst to one worker, time and CPU of the process each.',
    nothing: 'A program that uses none of it.',
    registered: 'A name was registered by `carry`; the calls have no value.',
    storage:
      'The calls are made with a number in an AsyncLocalStorage that is not registered; none of it ' +
      'travels.',
    value: 'A registered name with a number, which the task reads.',
    trace: 'A `traceparent` of 55 characters, which the task reads.',
    cpu: 'Within `measureCpu`: the task reads its `cpuMs`.',
  },
  parameters: {
    kinds: { value: 'all', doc: 'which, by comma' },
    calls: { value: 20_000, quick: 5000, doc: 'calls of a slice' },
    rounds: { value: 21, quick: 5, doc: 'slices of each kind, behind one that compiles' },
  },
  run,
  verdicts,
} satisfies Table
