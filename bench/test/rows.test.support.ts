/**
 * Rows for tests that judge or keep them, as a run makes them.
 *
 * One sample of one thread; a test sets what it is about.
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
