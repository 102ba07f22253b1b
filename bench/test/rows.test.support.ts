/**
 * Rows for tests that judge or keep them, as a run makes them, and runs of tables that measure nothing.
 *
 * One sample of one thread; a test sets what it is about. The machine is read once for all runs of a process.
 */
import { readMachine } from '../harness/machine.ts'
import type { BenchRecord } from '../harness/record.ts'
import { runTable, type Words } from '../harness/run-table.ts'
import type { Row, Table } from '../harness/table.ts'

let machine: ReturnType<typeof readMachine> | undefined

/** A run of that table without progress. */
export function runOf(table: Table, words: Words = { quick: false, values: {} }): Promise<BenchRecord> {
  machine ??= readMachine()
  return runTable(table, words, () => {}, machine)
}

/** Whether the demands hold of these rows. */
export const holdsOf = (
  { verdicts }: Pick<Required<Table>, 'verdicts'>,
  rows: readonly Row[],
): (boolean | undefined)[] => verdicts(rows).map(({ holds }) => holds)

/** A row with those traits. */
export function rowOf(traits: Partial<Row>): Row {
  return {
    section: 'one',
    row: 'p50',
    contender: 'corespun',
    condition: 'cores spinning',
    threads: 1,
    unit: 'ms',
    better: 'lower',
    median: 1,
    low: 1,
    high: 1,
    samples: 1,
    ...traits,
  }
}
