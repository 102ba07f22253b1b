/**
 * Table `execute`: what a call to another thread costs, compared with the common pools for Node.
 *
 * Section by section it answers the tables of the napajs report, and it judges the demands on zones.
 */
import { type Context, type Row, type Table, chosenOf } from '../harness/table.ts'
import { BenchError } from '../harness/errors.ts'
import { firstCalls, memory, overhead } from './execute/overhead.ts'
import { parts } from './execute/parts.ts'
import { type Plan, planOf } from './execute/plan.ts'
import { scaling, zoneAgainstMain } from './execute/scaling.ts'
import { batch, idle, sequential } from './execute/sequential.ts'
import { verdicts } from './execute/verdicts.ts'
import { why } from './execute/why.ts'

const SECTIONS: Readonly<Record<string, (plan: Plan) => Promise<Row[]>>> = {
  sequential,
  batch,
  overhead,
  'first calls': firstCalls,
  parts,
  scaling,
  'zone against main thread': zoneAgainstMain,
  why,
  memory,
  idle,
}

async function run(context: Context): Promise<Row[]> {
  const plan = planOf(context)
  const rows: Row[] = []
  for (const section of wantedSections(context)) {
    context.progress(`section ${section}`)
    if (context.isLate()) {
      context.skip(`section ${section}`, 'the time of a quick run was over')
      continue
    }
    const began = performance.now()
    rows.push(...(await sectionRows(section, plan)))
    context.progress(`section ${section} took ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  return rows
}

/** A section in which a pool dies is left out, by name; a wrong response ends everything. */
async function sectionRows(section: string, plan: Plan): Promise<Row[]> {
  try {
    return await SECTIONS[section](plan)
  } catch (error) {
    if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
    plan.context.skip(`section ${section}`, error.message.split('\n').slice(0, 3).join(' '))
    return []
  }
}

function wantedSections(context: Context): readonly string[] {
  if (context.flag('parts')) return ['parts']
  if (context.flag('why')) return ['why']
  return chosenOf(context, 'sections', Object.keys(SECTIONS))
}

export default {
  name: 'execute',
  title: 'A call to another thread',
  definitions: {
    sequential:
      'One call of an empty function after the other, one worker: p50 and p99 of a slice, median ' +
      'over rounds; ratio to the ping-pong in C of the same round.',
    batch:
      'So many calls of an empty function issued at once by one thread and awaited together; time ' +
      'over calls.',
    overhead:
      'Calls of an empty function in a warm zone of one worker: the whole loop in ms, each call ' +
      'awaited before the next, or all issued at once.',
    'first calls':
      'A fresh process each: opening the pool to its first result, then 20 calls one by one, then ' +
      'the steady p50.',
    parts:
      'One call split into the six parts of the seed by stamps that travel with it, each part in calls ' +
      'of its own, less the calibrated cost of its stamps; all on one monotonic clock. Sum: the six ' +
      'medians and that of the function, added, over the median of the same call without stamps.',
    scaling:
      'Every worker computes the same number (--crcs) of CRC-32 of a 1024-character string as the ' +
      'main thread does alone. Rate: workers × time of one / time. ' +
      'Ideal time: that of one worker × max(1, workers / cores). Two workers must reach 1.9 × the ' +
      'rate, eight at most 1.05 × the ideal time. cpu % is of the whole machine.',
    'zone against main thread':
      'The same loop over numbers, strings, arrays, objects and a Map in both, in turn, in one process.',
    why: 'Why more workers can seem to beat fewer: the causes tried one at a time; see each row.',
    memory: 'Resident memory with 5 workers less that with 1, over 4, in fresh processes that have worked.',
    idle: 'CPU of the whole process while a pool of 2 workers that has worked waits for nothing.',
  },
  parameters: {
    sections: { value: 'all', doc: 'which sections, by comma' },
    contenders: { value: 'all', quick: 'corespun,piscina,postMessage', doc: 'which pools, by comma' },
    conditions: { value: 'all', doc: 'which conditions, by comma' },
    rounds: { value: 11, quick: 2, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 150, quick: 40, doc: 'length of a latency slice' },
    batch: { value: 50_000, quick: 5_000, doc: 'calls at once' },
    'batch-threads': { value: 2, doc: 'the larger number of workers in batches' },
    'overhead-calls': { value: 50_000, quick: 5_000, doc: 'largest count of the overhead section' },
    crcs: { value: 1_000_000, quick: 12_000, doc: 'CRCs for each worker' },
    'crc-slices': { value: 10, quick: 3, doc: 'slices that these are split into' },
    workers: { value: '1,2,4,8', doc: 'numbers of workers in the scaling section' },
    'scaling-contenders': {
      value: 'corespun,piscina,tinypool,workerpool,poolifier,postMessage',
      quick: 'corespun',
      doc: 'pools in the scaling section',
    },
    'mixed-rounds': { value: 400_000, quick: 50_000, doc: 'rounds of the loop of zone against main thread' },
    'idle-ms': { value: 10_000, quick: 1_000, doc: 'how long an idle pool is watched' },
    parts: { value: false, doc: 'only the six parts of one call' },
    why: { value: false, doc: 'only the section that asks why more workers beat fewer' },
  },
  run,
  verdicts,
} satisfies Table
