/**
 * Section `parts`: one call split into the six parts that the seed names.
 *
 * Each part is timed in calls of its own, which carry the stamps of that part and no others, and what those
 * cost is calibrated apart and taken off. Spans of one call would add up to it by themselves; these do only
 * if nothing is left out and nothing is counted twice. The row SUM_ROW sets the sum of the six medians and
 * the function's own against the median of the same call without stamps.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { PartsOrder, PartsResult } from '../../contenders/parts.ts'
import type { Condition } from '../../harness/conditions.ts'
import { DIST_FOLDER } from '../../harness/paths.ts'
import { Samples } from '../../harness/rounds.ts'
import type { Row } from '../../harness/table.ts'
import type { Plan } from './plan.ts'

const PARTS = [
  '1 marshall arguments',
  '2 wait for the worker',
  '3 unmarshall arguments',
  '4 marshall the result',
  '5 wait for the caller',
  '6 unmarshall the result',
] as const

/** The row that sets the parts, each timed by itself, against the whole. */
export const SUM_ROW = 'sum of the parts / whole'

/** The six parts under every condition. */
export async function parts(plan: Plan): Promise<Row[]> {
  const rows: Row[] = []
  if (!plan.pools.includes('corespun')) return rows
  for (const condition of plan.conditions) rows.push(...(await partsUnder(plan, condition)))
  return rows
}

async function partsUnder(plan: Plan, condition: Condition): Promise<Row[]> {
  const samples = new Samples()
  for (let round = 0; round < Math.max(plan.context.quick ? 1 : 3, Math.ceil(plan.rounds / 2)); round += 1) {
    plan.context.progress(`parts, ${condition.name}: process ${round + 1}`)
    try {
      samples.add(
        'corespun',
        figuresOf(
          await runParts(condition, {
            calls: plan.context.quick ? 500 : 5000,
            bytes: 100,
            spin: condition.spin,
          }),
        ),
      )
    } catch (error) {
      plan.context.skip(
        `parts, ${condition.name}`,
        String((error as { stderr?: string }).stderr ?? error).slice(0, 300),
      )
      return []
    }
  }
  const shape = {
    section: 'parts',
    condition: condition.name,
    threads: 1,
    unit: 'µs',
    better: 'lower',
  } as const
  return [
    ...[...PARTS, 'the function itself', 'whole without stamps', 'stamps, calibrated'].flatMap((row) =>
      samples.rows({ ...shape, row, figure: row }),
    ),
    ...samples.rows({ ...shape, row: SUM_ROW, figure: 'sum', unit: '×' }),
  ]
}

function figuresOf({ partsUs, functionUs, plainUs, stampsUs }: PartsResult): Record<string, number> {
  const named = Object.fromEntries(PARTS.map((part, index) => [part, partsUs[index]]))
  const sum = partsUs.reduce((total, part) => total + part, functionUs)
  return {
    ...named,
    'the function itself': functionUs,
    'whole without stamps': plainUs,
    'stamps, calibrated': stampsUs,
    sum: sum / plainUs,
  }
}

async function runParts(condition: Condition, order: PartsOrder): Promise<PartsResult> {
  const [command, ...words] = [
    ...condition.prefix,
    process.execPath,
    `${DIST_FOLDER}/contenders/parts.js`,
    JSON.stringify(order),
  ]
  const { stdout } = await promisify(execFile)(command, words)
  return JSON.parse(stdout) as PartsResult
}
