/**
 * The demands of table jobs.
 *
 * The rows are made here instead of by a run, which needs servers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/jobs.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

test('each demand compares with its own rival, and none holds unmeasured', () => {
  const of = (section: string, contender: string, median: number, row = '64 in flight') =>
    rowOf({ section, row, contender, median })
  const rows = (own: number, finished: number, countsUs: number) => [
    of('durable', 'corespun', own),
    of('durable', 'BullMQ', 100),
    of('durable', 'pg-boss', 100),
    of('durable', 'graphile-worker', 200),
    of('durable', 'corespun on Postgres', 0.4 * own),
    of('finished', 'corespun', 1100),
    of('finished', 'corespun, finished', finished),
    of('finished', 'corespun, finished', countsUs, 'counts()'),
  ]
  assert.deepEqual(holdsOf(table, rows(500, 1000, 1000)), Array(6).fill(true))
  assert.deepEqual(holdsOf(table, rows(499, 999, 1001)), Array(6).fill(false))
  assert.deepEqual(holdsOf(table, []), Array(6).fill(undefined))
})
