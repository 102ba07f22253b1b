/**
 * Sections `sequential`, `batch` and `idle`: one call after another, many at once, none at all.
 *
 * The function does nothing, so what is measured is the way there and back.
 */
import { type Child, withChildren } from '../../harness/child.ts'
import type { Condition } from '../../harness/conditions.ts'
import { buildFloor, FLOOR, floorSlice } from '../../harness/floor.ts'
import { Samples } from '../../harness/rounds.ts'
import type { Row } from '../../harness/table.ts'
import { mainCondition, type Plan } from './plan.ts'

/** As many as the engine needs to compile both forms of call, and the heap to grow to a batch's size. */
const WARM_UP_BATCHES = 3

/** Round trips one after another: p50 and p99 of each slice, medians over the rounds. */
export async function sequential(plan: Plan): Promise<Row[]> {
  const floor = buildFloor(plan.context.skip)
  const rows: Row[] = []
  for (const condition of plan.conditions) rows.push(...(await sequentialUnder(plan, condition, floor)))
  return rows
}

async function sequentialUnder(plan: Plan, condition: Condition, floor: string | undefined): Promise<Row[]> {
  const { rounds, sliceMs, context } = plan
  const samples = new Samples()
  await withChildren(
    [...plan.pools, ...plan.blocking, 'direct'],
    { condition, threads: 1, skip: context.skip },
    async (children) => {
      for (let round = -1; round < rounds; round += 1) {
        context.progress(`sequential, ${condition.name}: round ${round + 1} of ${rounds}`)
        const keep = round >= 0 // the first warms up every contender and is not kept
        if (floor !== undefined && keep) samples.add(FLOOR, { ...floorSlice(floor, condition, sliceMs) })
        for (const child of children) {
          const slice = await child.do('sequential', { form: 'named', sliceMs })
          const reused =
            child.contender === 'corespun'
              ? await child.do('sequential', { form: 'reused', sliceMs })
              : undefined
          if (keep) samples.add(child.contender, slice)
          if (keep && reused !== undefined) samples.add('corespun run(fn)', reused)
        }
      }
    },
  )
  const shape = {
    section: 'sequential',
    condition: condition.name,
    threads: 1,
    unit: 'µs',
    better: 'lower',
    cpu: 'cpuUs',
  } as const
  const against = floor === undefined ? 'postMessage' : FLOOR
  return [
    ...samples.rows({ ...shape, row: 'p50', figure: 'p50Us', against }),
    ...samples.rows({ ...shape, row: 'p99', figure: 'p99Us', against }),
  ]
}

/** Many calls at once from one thread, with one thread and with all cores. */
export async function batch(plan: Plan): Promise<Row[]> {
  const { context, rounds } = plan
  const calls = context.number('batch')
  const condition = mainCondition(plan)
  const rows: Row[] = []
  for (const threads of threadCounts(context.number('batch-threads'))) {
    const samples = new Samples()
    await withChildren(plan.pools, { condition, threads, skip: context.skip }, async (children) => {
      for (let round = -WARM_UP_BATCHES; round < Math.max(context.quick ? 2 : 5, rounds / 2); round += 1) {
        context.progress(`batch of ${calls}, ${threads} threads: round ${round + 1}`)
        for (const child of children) await batchSlice(child, calls, round < 0 ? new Samples() : samples)
      }
    })
    const shape = {
      section: 'batch',
      condition: condition.name,
      threads,
      better: 'lower',
      against: 'piscina',
    } as const
    rows.push(
      ...samples.rows({ ...shape, row: `${calls} at once, each`, figure: 'us', unit: 'µs', cpu: 'cpuUs' }),
    )
    rows.push(
      ...samples.rows({
        ...shape,
        row: `${calls} at once, rate`,
        figure: 'rate',
        unit: 'calls/s',
        better: 'higher',
      }),
    )
  }
  return rows
}

async function batchSlice(child: Child, calls: number, samples: Samples): Promise<void> {
  const { ms, cpuUs } = await child.do('batch', { form: 'named', calls })
  const figures = { us: (ms * 1000) / calls, rate: (calls / ms) * 1000, cpuUs }
  samples.add(child.contender, figures)
  if (child.contender !== 'corespun') return
  const anonymous = await child.do('batch', { form: 'reused', calls })
  samples.add('corespun run(fn)', {
    us: (anonymous.ms * 1000) / calls,
    rate: (calls / anonymous.ms) * 1000,
    cpuUs: anonymous.cpuUs,
  })
}

function threadCounts(most: number): number[] {
  return most > 1 ? [1, most] : [1]
}

/** CPU of a whole process whose pool has worked and now has nothing to do. */
export async function idle(plan: Plan): Promise<Row[]> {
  const ms = plan.context.number('idle-ms')
  const condition = mainCondition(plan)
  const samples = new Samples()
  const setting = { condition, threads: 2, skip: plan.context.skip }
  await withChildren([...plan.pools, 'direct'], setting, async (children) => {
    for (const child of children) await child.do('batch', { form: 'named', calls: 1000 })
    plan.context.progress(`idle for ${ms} ms, all pools at the same time`)
    const seen = await Promise.all(
      children.map(async (child) => [child.contender, await child.do('idle', { ms })] as const),
    )
    for (const [contender, { cpuUs }] of seen) samples.add(contender, { share: (cpuUs / (ms * 1000)) * 100 })
  })
  return samples.rows({
    section: 'idle',
    row: `CPU over ${ms / 1000} s`,
    figure: 'share',
    condition: condition.name,
    threads: 2,
    unit: '% of a core',
    better: 'lower',
  })
}
