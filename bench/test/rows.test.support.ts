/**
 * Rows for tests that judge or keep them, as a run would give them.
 *
 * One sample of one thread; what a test is about it says itself.
 */
import type { Row } from '../harness/table.ts'

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
