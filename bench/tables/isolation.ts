/**
 * Table `isolation`: what a call to a zone costs whose workers are processes.
 *
 * Beside the same zone with threads, and beside a pool of threads: a process is worth choosing when a crash
 * must end one worker only, and the price of that is here. Conditions and slices are those of table execute.
 */
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { planOf } from './execute/plan.ts'
import { batch, sequential } from './execute/sequential.ts'

const OWN = 'corespun-process'
const RIVAL = 'piscina'
/** Most of a round trip to a process, against the rival's to a thread. */
const FACTOR_MAX = 1.5

async function run(context: Context): Promise<Row[]> {
  const plan = planOf(context)
  return [...(await sequential(plan)), ...(await batch(plan))]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const names = new Set(rows.map(({ condition }) => condition))
  return [...names].map((condition) => {
    const found = (contender: string): Row | undefined =>
      findRow(rows, { section: 'sequential', row: 'p50', condition, contender })
    const bar = `${condition}: a round trip to a process ≤ ${FACTOR_MAX} × ${RIVAL}'s to a thread`
    return judgeRatio(bar, [found(OWN), found(RIVAL)], (times) => times <= FACTOR_MAX)
  })
}

export default {
  name: 'isolation',
  title: 'A call to another process',
  definitions: {
    sequential:
      'One call of an empty function after the other, one worker: p50 and p99 of a slice, median over ' +
      'rounds.',
    batch:
      'So many calls of an empty function issued at once by one thread and awaited together; time over ' +
      'calls.',
  },
  parameters: {
    contenders: { value: `corespun,${OWN},${RIVAL}`, doc: 'which pools, by comma' },
    conditions: { value: 'all', doc: 'which conditions, by comma' },
    rounds: { value: 11, quick: 2, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 150, quick: 40, doc: 'length of a latency slice' },
    batch: { value: 20_000, quick: 2_000, doc: 'calls at once' },
    'batch-threads': { value: 2, doc: 'the larger number of workers in batches' },
  },
  run,
  verdicts,
} satisfies Table
