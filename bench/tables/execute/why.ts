/**
 * Section `why`: the napajs report saw the same work take less time on more workers, without an explanation.
 *
 * Each row removes or adds one cause that could do that and compares the time with one worker alone, warm,
 * just busy. A row below 1 is a cause that could make more workers seem to win; near 1 it cannot.
 */
import { type Child, withChildren } from '../../harness/child.ts'
import { Samples } from '../../harness/rounds.ts'
import type { Row } from '../../harness/table.ts'
import { mainCondition, type Plan } from './plan.ts'
import { CRC_TEXT, expectedCrc } from './scaling.ts'

/** The causes, in the order of the rows; the last one is the main thread's own share. */
export const WHY_CAUSES = [
  'first work of a fresh worker (compiling in the clock)',
  'after 2 s of idleness (core asleep, clock low)',
  'split into 100 calls',
  'two workers, one after the other test',
  'two workers, before any other test',
  'one worker beside a busy main thread',
  'the main thread itself',
] as const
const STEADY = 'one worker, warm, just busy'

/** The causes, one at a time. */
export async function why(plan: Plan): Promise<Row[]> {
  const samples = new Samples()
  const count = plan.context.quick ? 20_000 : 100_000
  const order = { text: CRC_TEXT, count, expected: expectedCrc(count) }
  const pool = plan.pools[0]
  const rounds = plan.context.quick ? 1 : Math.max(5, Math.ceil(plan.rounds / 2))
  for (let round = 0; round < rounds; round += 1) {
    plan.context.progress(`why: round ${round + 1} of ${rounds}, fresh processes`)
    samples.add(pool, await oneRound(plan, pool, order))
  }
  return WHY_CAUSES.flatMap((row) =>
    samples.rows({
      section: 'why',
      row,
      figure: row,
      condition: mainCondition(plan).name,
      threads: 2,
      better: 'lower',
      unit: `× ${STEADY}`,
    }),
  )
}

type CrcOrder = { readonly text: string; readonly count: number; readonly expected: number }

async function oneRound(plan: Plan, pool: string, order: CrcOrder): Promise<Record<string, number>> {
  const setting = { condition: mainCondition(plan), threads: 2, skip: plan.context.skip }
  const twoFirst = await withChildren([pool], setting, async ([child]) => {
    if (child === undefined) return undefined
    await work(child, order, 2)
    return work(child, order, 2)
  })
  return withChildren([pool], setting, async ([child]) => {
    if (child === undefined || twoFirst === undefined) return {}
    const fresh = await work(child, order, 1)
    for (let turn = 0; turn < 3; turn += 1) await work(child, order, 2)
    const steady = await work(child, order, 1)
    const two = await work(child, order, 2)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const rested = await work(child, order, 1)
    await child.do('crcHere', order)
    const here = (await child.do('crcHere', order)).ms
    const besideBusy = (await child.do('crcBesideMain', order)).ms
    const split = (await child.do('crcSplit', { ...order, calls: 100 })).ms
    const steadyAgain = await work(child, order, 1)
    const one = (steady + steadyAgain) / 2
    const taken = [fresh, rested, split, two, twoFirst, besideBusy, here]
    return Object.fromEntries(WHY_CAUSES.map((cause, index) => [cause, taken[index] / one]))
  })
}

async function work(child: Child, order: CrcOrder, calls: number): Promise<number> {
  return (await child.do('crc', { ...order, calls })).ms
}
