/**
 * Sections `scaling`, `zone against main thread` and `why`: CPU-bound work on 1, 2, 4 and 8 workers.
 *
 * Each worker computes the CRC-32 of a 1024-character string as often as the main thread does alone, so with
 * a free core per worker the time would not change; with fewer cores the ideal is workers / cores times one.
 */
import os from 'node:os'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { type Child, withChildren } from '../../harness/child.ts'
import type { Condition } from '../../harness/conditions.ts'
import { Samples } from '../../harness/rounds.ts'
import { ratioSummary, summary } from '../../harness/stats.ts'
import type { Row } from '../../harness/table.ts'
import { crc32, foldCrc, mixed } from '../../contenders/work.ts'
import { mainCondition, type Plan } from './plan.ts'

/** 1024 characters of plain text, the same for all. */
export const CRC_TEXT = 'The quick brown fox jumps over the lazy dog; 0123456789 times. '
  .repeat(17)
  .slice(0, 1024)

/** What `crcMany` must answer; the CRC itself from an independent source where this Node has one. */
export function expectedCrc(count: number): number {
  const one = typeof zlibCrc32 === 'function' ? zlibCrc32(CRC_TEXT) : crc32(CRC_TEXT)
  let folded = 0
  for (let turn = 0; turn < count; turn += 1) folded = foldCrc(folded, one)
  return folded
}

interface Work {
  readonly count: number
  readonly expected: number
  readonly slices: number
}

/** The million CRCs, on the main thread and on each number of workers, in interleaved slices. */
export async function scaling(plan: Plan): Promise<Row[]> {
  const { context } = plan
  const total = context.number('crcs')
  const slices = context.number('crc-slices')
  const work = { count: Math.ceil(total / slices), expected: expectedCrc(Math.ceil(total / slices)), slices }
  const workers = context.text('workers').split(',').map(Number)
  const rows: Row[] = []
  for (const pool of plan.pools.filter((name) =>
    context.text('scaling-contenders').split(',').includes(name),
  )) {
    rows.push(...(await scalingOf(plan, pool, { work, workers })))
  }
  return rows
}

async function scalingOf(plan: Plan, pool: string, order: { work: Work; workers: number[] }): Promise<Row[]> {
  const condition = mainCondition(plan)
  const samples = await scalingSamples(plan, pool, condition, order)
  const perMillion = 1_000_000 / order.work.count
  return samples.contenders.flatMap((name) => {
    const workers = Number(name)
    const common = {
      section: 'scaling',
      row: workers === 0 ? 'main thread' : `${workers} worker${workers > 1 ? 's' : ''}`,
      contender: workers === 0 ? `main thread beside ${pool}` : pool,
      condition: condition.name,
      threads: workers,
      better: 'lower' as const,
    }
    const seed = (line: string): Pick<Row, 'seed'> =>
      pool === 'corespun' ? { seed: `napa/scaling/${line}/${name === '0' ? 'node' : name}` } : {}
    const times = summary(samples.of(name, 'ms').map((ms) => ms * perMillion))
    return [
      {
        ...common,
        unit: 'ms per million CRCs each',
        ...times,
        ...seed('time'),
        note: `${order.work.slices} slices of ${order.work.count}; ${scalingNote(samples, workers)}`,
      },
      {
        ...common,
        row: `${common.row}, cpu`,
        unit: '% of all cores',
        ...summary(samples.of(name, 'cpu')),
        ...seed('cpu'),
      },
    ]
  })
}

/** Rate against one worker and time against the ideal, from slices of the same round. */
function scalingNote(samples: Samples, workers: number): string {
  const [alone, here] = [samples.of('1', 'ms'), samples.of(String(workers), 'ms')]
  if (workers === 0) return `${ratioSummary(here, alone).median.toFixed(3)} × one worker's time`
  const quotient = ratioSummary(here, alone).median
  const ideal = Math.max(1, workers / os.availableParallelism())
  return (
    `${(workers / quotient).toFixed(3)} × one worker's rate · ${(quotient / ideal).toFixed(3)} ` +
    `× ideal time`
  )
}

/** Samples by number of workers, '0' being the main thread. */
async function scalingSamples(
  plan: Plan,
  pool: string,
  condition: Condition,
  order: { work: Work; workers: number[] },
): Promise<Samples> {
  const samples = new Samples()
  const children = new Map<number, Child>()
  const open = async (left: number[]): Promise<void> => {
    const [workers, ...others] = left
    if (workers === undefined) return slicesOf(plan, pool, { children, samples, ...order })
    const setting = { condition, threads: workers, skip: plan.context.skip }
    await withChildren([pool], setting, async ([child]) => {
      if (child === undefined) return
      children.set(workers, child)
      await open(others)
    })
  }
  await open(order.workers)
  return samples
}

async function slicesOf(
  plan: Plan,
  pool: string,
  run: { children: Map<number, Child>; samples: Samples; work: Work; workers: number[] },
): Promise<void> {
  const { work, samples, children } = run
  const cores = os.availableParallelism()
  const here = children.get(run.workers[0])!
  const order = { text: CRC_TEXT, count: work.count, expected: work.expected }
  for (let slice = -1; slice < work.slices; slice += 1) {
    plan.context.progress(`scaling, ${pool}: slice ${slice + 1} of ${work.slices}`)
    const alone = await here.do('crcHere', order)
    if (slice >= 0) samples.add('0', { ms: alone.ms, cpu: share(alone, cores) })
    for (const [workers, child] of children) {
      const there = await child.do('crc', { ...order, calls: workers })
      if (slice >= 0) samples.add(String(workers), { ms: there.ms, cpu: share(there, cores) })
    }
  }
}

function share(slice: { ms: number; cpuMs: number }, cores: number): number {
  return (slice.cpuMs / slice.ms / cores) * 100
}

/** The same loop in the main thread and in a zone of the same process, slices in turn. */
export async function zoneAgainstMain(plan: Plan): Promise<Row[]> {
  const rounds = plan.context.number('crc-slices')
  const turns = plan.context.number('mixed-rounds')
  const expected = mixed({ rounds: turns })
  const condition = mainCondition(plan)
  const samples = new Samples()
  await withChildren(['corespun'], { condition, threads: 1, skip: plan.context.skip }, async ([child]) => {
    for (let round = -3; child !== undefined && round < rounds; round += 1) {
      const here = await child.do('mixedHere', { rounds: turns, expected })
      const there = await child.do('mixedThere', { rounds: turns, expected })
      if (round < 0) continue
      samples.add('main thread', { ms: here.ms })
      samples.add('corespun', { ms: there.ms })
    }
  })
  return samples.rows({
    section: 'zone against main thread',
    row: `${turns.toLocaleString('en-US')} rounds of a mixed loop`,
    figure: 'ms',
    condition: condition.name,
    threads: 1,
    unit: 'ms',
    better: 'lower',
    against: 'main thread',
    seeds: { 'main thread': 'napa/javascript/time/node', corespun: 'napa/javascript/time/zone' },
  })
}
