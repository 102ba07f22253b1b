/**
 * Sections `overhead` and `first calls`: the seed's two tables of calls that do nothing.
 *
 * The seed's bench waits for each call in its warm-up and issues the counted calls at once; both ways are
 * measured here and named.
 */
import { type Child, startPool, survives, withChildren } from '../../harness/child.ts'
import type { Form } from '../../contenders/jobs.ts'
import { Samples } from '../../harness/rounds.ts'
import { summary } from '../../harness/stats.ts'
import type { Row } from '../../harness/table.ts'
import { mainCondition, type Plan } from './plan.ts'

/** Calls of the overhead section. */
export const COUNTS = [200, 5_000, 10_000, 50_000] as const
const FORM_WORDS: Readonly<Record<Form, string>> = {
  named: 'named',
  anonymous: 'anonymous',
  reused: 'anonymous, one function object',
}

/** 200 to 50,000 calls, named and anonymous, one by one and at once. */
export async function overhead(plan: Plan): Promise<Row[]> {
  const { context } = plan
  const condition = mainCondition(plan)
  const samples = new Samples()
  const most = context.number('overhead-calls')
  const counts = COUNTS.filter((count) => count <= most)
  await withChildren(plan.pools, { condition, threads: 1, skip: context.skip }, async (children) => {
    const forms = new Map<Child, Form[]>()
    for (const child of children) forms.set(child, await warmedForms(child))
    for (
      let round = 0;
      round < Math.max(plan.context.quick ? 2 : 3, Math.ceil(plan.rounds / 3));
      round += 1
    ) {
      for (const calls of counts) {
        context.progress(`overhead, ${calls} calls: round ${round + 1}`)
        for (const child of children)
          for (const form of forms.get(child)!) await overheadSlice(child, { form, calls }, samples)
      }
    }
  })
  return counts.flatMap((calls) => overheadRows(samples, calls, condition.name))
}

async function warmedForms(child: Child): Promise<Form[]> {
  const forms: Form[] = ['named']
  for (const form of ['anonymous', 'reused'] as const) {
    const offered =
      child.contender === 'corespun' || (child.contender === 'workerpool' && form === 'anonymous')
    if (offered) forms.push(form)
  }
  for (const form of forms) await child.do('loop', { form, calls: 2000 })
  return forms
}

async function overheadSlice(
  child: Child,
  order: { form: Form; calls: number },
  samples: Samples,
): Promise<void> {
  const words = `${order.calls} ${order.form}`
  const oneByOne = await child.do('loop', order)
  const atOnce = await child.do('batch', order)
  samples.add(child.contender, {
    [`${words} one by one`]: oneByOne.ms,
    [`${words} one by one cpu`]: oneByOne.cpuUs,
    [`${words} at once`]: atOnce.ms,
    [`${words} at once cpu`]: atOnce.cpuUs,
  })
}

function overheadRows(samples: Samples, calls: number, condition: string): Row[] {
  const rows: Row[] = []
  for (const form of ['named', 'anonymous', 'reused'] as const) {
    for (const way of ['one by one', 'at once'] as const) {
      const figure = `${calls} ${form} ${way}`
      const seeded = form === 'named' && way === 'one by one'
      rows.push(
        ...samples.rows({
          section: 'overhead',
          row: `${calls} calls ${FORM_WORDS[form]}, ${way}`,
          figure,
          condition,
          threads: 1,
          unit: 'ms',
          better: 'lower',
          cpu: `${figure} cpu`,
          against: 'piscina',
          ...(seeded ? { seeds: { corespun: `napa/overhead/${calls}/ms` } } : {}),
          ...(calls === 10_000 && form === 'anonymous' && way === 'one by one'
            ? { seeds: { corespun: 'napa/overhead/10000-anonymous/ms' } }
            : {}),
        }),
      )
    }
  }
  return rows
}

/** The first 20 calls of a fresh process, one by one; medians over processes, and the steady call beside. */
export async function firstCalls(plan: Plan): Promise<Row[]> {
  const { context } = plan
  const condition = mainCondition(plan)
  const samples = new Samples()
  const processes = Math.max(plan.context.quick ? 2 : 3, plan.rounds)
  const pools = new Set(plan.pools)
  for (let turn = 0; turn < processes; turn += 1) {
    context.progress(`first calls: process ${turn + 1} of ${processes}`)
    for (const pool of pools)
      if (!(await survives(pool, samples, context, () => firstsOf(pool, plan, samples)))) pools.delete(pool)
  }
  const shape = {
    section: 'first calls',
    condition: condition.name,
    threads: 1,
    unit: 'µs',
    better: 'lower',
  } as const
  const calls = Array.from({ length: 20 }, (_, index) => index + 1)
  return [
    ...calls.flatMap((call) =>
      samples.rows({
        ...shape,
        row: `call ${call}`,
        figure: `call ${call}`,
        seeds: { corespun: `napa/first/${call}/ms` },
      }),
    ),
    ...samples.rows({ ...shape, row: 'steady, p50', figure: 'steady' }),
    ...samples.rows({
      ...shape,
      row: 'from opening the pool to the first result',
      figure: 'open',
      unit: 'ms',
    }),
  ]
}

async function firstsOf(pool: string, plan: Plan, samples: Samples): Promise<void> {
  const child = await startPool(pool, mainCondition(plan))
  try {
    const opened = await child.do('open', { threads: 1, spin: true })
    const { us } = await child.do('firsts', { form: 'named', calls: 20 })
    const steady = await child.do('sequential', { form: 'named', sliceMs: plan.sliceMs })
    const named = Object.fromEntries(us.map((value, index) => [`call ${index + 1}`, value]))
    samples.add(pool, { ...named, steady: steady.p50Us, open: opened.ms })
  } finally {
    await child.end()
  }
}

/** Memory of a thread: resident size with many threads against one, in fresh processes. */
export async function memory(plan: Plan): Promise<Row[]> {
  const many = 5
  const perThread = new Map<string, number[]>()
  const turns = plan.context.quick ? 1 : 3
  for (let turn = 0; turn < turns; turn += 1) {
    for (const pool of plan.pools) {
      plan.context.progress(`memory per worker, ${pool}: ${turn + 1} of ${turns}`)
      const [one, more] = [await residentMb(pool, 1, plan), await residentMb(pool, many, plan)]
      if (one === undefined || more === undefined) continue
      perThread.set(pool, [...(perThread.get(pool) ?? []), (more - one) / (many - 1)])
    }
  }
  return [...perThread].map(([contender, values]) => ({
    section: 'memory',
    row: 'per worker',
    contender,
    condition: mainCondition(plan).name,
    threads: many,
    unit: 'MB',
    better: 'lower' as const,
    ...summary(values),
  }))
}

async function residentMb(pool: string, threads: number, plan: Plan): Promise<number | undefined> {
  const setting = { condition: mainCondition(plan), threads, skip: plan.context.skip }
  return withChildren(
    [pool],
    setting,
    async ([child]) => (await child?.do('memory', { calls: threads * 4 }))?.rssMb,
  )
}
