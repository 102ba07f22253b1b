/**
 * The demands of table durable.
 *
 * The rows are made here instead of by a run, which needs a disk that nobody else uses.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/durable.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

test('each demand compares with its own figure, and none holds unmeasured', () => {
  const of = (section: string, row: string, median: number, contender = 'corespun') =>
    rowOf({ section, row, contender, median })
  const rows = (more: number, rate: number) => [
    of('step', 'p50', 150 + more),
    of('step', 'p50', 100, 'node:sqlite'),
    of('grouped', '64 runs', rate),
    of('grouped', '64 runs', 2000, 'node:sqlite'),
    of('long', 'last tenth', 110 + more),
    of('long', 'first tenth', 100),
    of('sleeping', 'start', 3000 + more),
    of('sleeping', 'memory of each', 200 + more),
    of('workflows', 'per core', rate),
    of('workflows', 'per core', 1000, 'DBOS'),
  ]
  assert.deepEqual(holdsOf(table, rows(0, 1000)), Array(6).fill(true))
  assert.deepEqual(holdsOf(table, rows(1, 999)), Array(6).fill(false))
  assert.deepEqual(holdsOf(table, []), Array(6).fill(undefined))
})
