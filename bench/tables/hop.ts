/**
 * Table `hop`: how much work a stage must do before sending it to a zone pays.
 *
 * Two answers, because there are two reasons to send. To finish sooner: with so many stages in flight, the
 * work per stage at which the zone's time per item falls below that of doing all of it here. To keep the
 * caller free it is enough that the work is longer than what the caller itself spends on a hop, and that is
 * its CPU time.
 */
import { type Child, withChildren } from '../harness/child.ts'
import { type Condition, conditions } from '../harness/conditions.ts'
import { Samples } from '../harness/rounds.ts'
import { summary } from '../harness/stats.ts'
import type { Context, Row, Table } from '../harness/table.ts'

const CONTENDERS = ['corespun', 'corespun-process', 'piscina', 'postMessage'] as const
/** Work of the longest stage tried, µs; above it a hop counts as not paying off. */
const WORK_MAX_US = 1024
const TURNS_PER_SLICE = 2_000_000

interface Trial {
  readonly bytes: number
  readonly inFlight: number
  readonly threads: number
  readonly sliceMs: number
}

async function run(context: Context): Promise<Row[]> {
  const chosen = context.text('conditions')
  const rows: Row[] = []
  for (const condition of conditions(context.skip)) {
    if (chosen === 'all' || chosen.split(',').includes(condition.name))
      rows.push(...(await under(context, condition)))
  }
  return rows
}

async function under(context: Context, condition: Condition): Promise<Row[]> {
  const threads = context.number('workers')
  const sizes = context.text('bytes').split(',').map(Number)
  const contenders = context.text('contenders').split(',')
  const samples = new Map(sizes.map((bytes) => [bytes, new Samples()]))
  await withChildren(contenders, { condition, threads, skip: context.skip }, async (children) => {
    const usPerTurn = await turnCost(children[0])
    for (let round = 0; round < context.number('rounds'); round += 1) {
      for (const bytes of sizes) {
        for (const child of children) {
          if (context.isLate()) {
            context.skip(`hop, ${bytes} bytes, ${child.contender}`, 'the time of a quick run was over')
            continue
          }
          context.progress(`hop, ${condition.name}: round ${round + 1}, ${bytes} bytes, ${child.contender}`)
          const trial = {
            bytes,
            threads,
            inFlight: context.number('in-flight'),
            sliceMs: context.number('slice-ms'),
          }
          samples.get(bytes)!.add(child.contender, await threshold(child, trial, usPerTurn))
        }
      }
    }
  })
  const shape = { condition: condition.name, threads, better: 'lower' } as const
  return sizes.flatMap((bytes) => {
    const row = bytes === 0 ? 'no payload' : `${bytes.toLocaleString('en-US')} bytes each way`
    const of = samples.get(bytes)!
    return [
      ...of.rows({ ...shape, section: 'hop', row, figure: 'paysUs', unit: 'µs of work' }).map(explained),
      ...of.rows({
        ...shape,
        section: 'empty hop',
        row,
        figure: 'emptyUs',
        unit: 'µs',
        cpu: 'emptyCpuUs',
        against: 'piscina',
      }),
    ]
  })
}

/** µs of one turn of the stage's loop, here and now. */
async function turnCost(child: Child): Promise<number> {
  const order = { items: 1, inFlight: 1, turns: TURNS_PER_SLICE, bytes: 0 }
  const costs: number[] = []
  for (let turn = 0; turn < 5; turn += 1)
    costs.push((await child.do('hopHere', order)).usPerItem / TURNS_PER_SLICE)
  return summary(costs).median
}

/**
 * The work at which both ways take the same, by doubling and then halving the gap five times;
 * WORK_MAX_US when even the longest stage does not pay.
 */
async function threshold(child: Child, trial: Trial, usPerTurn: number): Promise<Record<string, number>> {
  const empty = await there(child, trial, 0)
  let [low, high] = [0, 0.25]
  while (
    high <= WORK_MAX_US &&
    !(await pays(child, trial, { workUs: high, usPerTurn, guessUs: empty.usPerItem }))
  )
    [low, high] = [high, high * 2]
  if (high > WORK_MAX_US) return { paysUs: WORK_MAX_US, emptyUs: empty.usPerItem, emptyCpuUs: empty.cpuUs }
  for (let step = 0; step < 5; step += 1) {
    const middle = (low + high) / 2
    if (await pays(child, trial, { workUs: middle, usPerTurn, guessUs: empty.usPerItem })) high = middle
    else low = middle
  }
  return { paysUs: (low + high) / 2, emptyUs: empty.usPerItem, emptyCpuUs: empty.cpuUs }
}

async function pays(
  child: Child,
  trial: Trial,
  work: { workUs: number; usPerTurn: number; guessUs: number },
): Promise<boolean> {
  const turns = Math.max(1, Math.round(work.workUs / work.usPerTurn))
  const items = itemsFor(trial, work.workUs + work.guessUs)
  const order = { bytes: trial.bytes, inFlight: trial.inFlight, turns, items }
  const far = await child.do('hopThere', order)
  const near = await child.do('hopHere', order)
  return far.usPerItem < near.usPerItem
}

async function there(
  child: Child,
  trial: Trial,
  turns: number,
): Promise<{ usPerItem: number; cpuUs: number }> {
  await child.do('hopThere', { ...trial, turns, items: 2000 }) // warms up the shape of this payload
  const first = await child.do('hopThere', { ...trial, turns, items: 500 })
  return child.do('hopThere', { ...trial, turns, items: itemsFor(trial, first.usPerItem) })
}

/** As many items as fill a slice, enough to keep all lanes busy. */
function itemsFor(trial: Trial, usPerItem: number): number {
  return Math.max(
    trial.inFlight * 2,
    Math.min(20_000, Math.round((trial.sliceMs * 1000) / Math.max(usPerItem, 0.5))),
  )
}

function explained(row: Row): Row {
  return row.median < WORK_MAX_US ? row : { ...row, note: `does not pay up to ${WORK_MAX_US} µs of work` }
}

export default {
  name: 'hop',
  title: 'The work above which sending a stage to a zone pays',
  definitions: {
    hop:
      'Stages of equal work with a payload (records of 100 bytes) both ways, so many in flight ' +
      'from one thread: the work per stage at which the zone finishes as soon ' +
      'as doing all stages in the calling thread. On one core it cannot pay.',
    'empty hop':
      'The same with no work in the stage: time per item, and CPU of the whole process per item, ' +
      'which is what a hop costs.',
  },
  parameters: {
    bytes: { value: '0,100,1000,10000,100000', quick: '0,1000', doc: 'payload sizes, by comma' },
    'in-flight': { value: 64, quick: 32, doc: 'stages in flight' },
    workers: { value: 2, doc: 'workers' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 30, quick: 10, doc: 'length of one trial' },
    conditions: { value: 'all', quick: 'cores spinning', doc: 'which conditions, by comma' },
    contenders: { value: CONTENDERS.join(','), quick: 'corespun,piscina', doc: 'which pools, by comma' },
  },
  run,
} satisfies Table
