/**
 * Table `order`: how long a call waits that is to go before others, and what an order costs.
 *
 * The waits are counted in tasks that begin before it, so they hold on a busy machine too.
 */
import type { OrderOptions } from 'corespun/zone'
import { Child, nodeCommand } from '../harness/child.ts'
import { SPINNING } from '../harness/conditions.ts'
import { Samples } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import type { Behind, Cost } from './order/process.ts'

/** Who waits and who is to go before, by section. */
const WAITS: Readonly<Record<string, { crowd: OrderOptions; single: OrderOptions }>> = {
  'a high task among low ones': { crowd: { priority: 'low' }, single: { priority: 'high' } },
  "a tenant's task among another's": { crowd: { tenant: 'large' }, single: { tenant: 'small' } },
  'a task of one worker among those of all': { crowd: {}, single: { affinity: 'key' } },
}
const TENANTS = 1000
/** The options of the calls of a burst. */
const COSTS: Readonly<Record<string, readonly OrderOptions[]>> = {
  none: [{}],
  priority: [{ priority: 'low' }],
  tenant: [{ tenant: 'a' }],
  [`${TENANTS} tenants`]: Array.from({ length: TENANTS }, (_, tenant) => ({ tenant })),
  affinity: [{ affinity: 'a' }],
}
const SHAPE = { condition: SPINNING.name, threads: 1, better: 'lower' } as const

async function run(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const rows: Row[] = []
  const waiting = context.number('waiting')
  const sections = chosenOf(context, 'sections', [...Object.keys(WAITS), 'cost'])
  for (const section of sections.filter((name) => name in WAITS)) {
    context.progress(section)
    const child = await started()
    const order: Behind = {
      ...{ what: 'behind', waiting, taskUs: context.number('task-us'), ...WAITS[section] },
      samples: context.number('samples'),
    }
    const found = await answered<number[][]>(child, order)
    const own = new Samples()
    for (const [tasks, us] of found) own.add('corespun', { tasks, us })
    rows.push(
      ...own.rows({ ...SHAPE, section, row: 'begun before it', figure: 'tasks', unit: 'tasks' }),
      ...own.rows({ ...SHAPE, section, row: 'until it begins', figure: 'us', unit: 'µs' }),
    )
  }
  if (!sections.includes('cost')) return rows
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const [kind, options] of Object.entries(COSTS)) {
      context.progress(`cost, round ${round + 1}: ${kind}`)
      const child = await started()
      const order: Cost = { what: 'cost', calls: context.number('calls'), options }
      samples.add(kind, await answered<{ us: number; cpuUs: number }>(child, order))
    }
  }
  const cost = { ...SHAPE, section: 'cost', row: 'a call', figure: 'us', unit: 'µs' } as const
  return [...rows, ...samples.rows({ ...cost, cpu: 'cpuUs', against: 'none' })]
}

async function answered<Answer>(child: Child, order: Behind | Cost): Promise<Answer> {
  try {
    return await child.order<Answer>(order)
  } finally {
    await child.end()
  }
}

function started(): Promise<Child> {
  return Child.start('corespun', [...SPINNING.prefix, ...nodeCommand('tables/order/process.js')])
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return Object.keys(WAITS).map((section) => {
    const row = findRow(rows, { section, row: 'begun before it', contender: 'corespun' })
    return judge<[Row]>(`${section}: at most one other begins before it`, [row], ({ median, high }) => [
      `${median} (${high} at most)`,
      median <= 1,
    ])
  })
}

export default {
  name: 'order',
  title: 'Calls that go before others',
  definitions: {
    waiting: 'Calls that wait when the single one is made; one worker.',
    'begun before it': 'Tasks of the crowd that begin after the call was made and before it begins.',
    'until it begins':
      'Time from the call to its begin in the worker: what is left of the running task, and a hop.',
    cost: 'Empty calls in one burst, each with the named options.',
  },
  parameters: {
    sections: { value: [...Object.keys(WAITS), 'cost'].join(','), doc: 'which, by comma' },
    waiting: { value: 1_000_000, quick: 100_000, doc: 'calls that wait' },
    'task-us': { value: 200, doc: 'length of their tasks' },
    samples: { value: 50, quick: 10, doc: 'single calls, one after the other' },
    calls: { value: 100_000, quick: 20_000, doc: 'calls in a burst' },
    rounds: { value: 9, quick: 3, doc: 'processes of each kind of burst' },
  },
  run,
  verdicts,
} satisfies Table
