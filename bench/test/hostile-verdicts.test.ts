/**
 * The demands on table hostile: the worst of all attacks decides, for waits and for memory each.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/hostile.ts'
import { rowOf } from './rows.test.support.ts'

test('the worst attack decides, and what was not measured is not met', () => {
  const p99 = (row: string, times: number) => {
    const ratio = { to: 'quiet', median: times, low: times, high: times }
    return rowOf({ section: 'http', row: `${row}: p99`, contender: 'beside attackers', ratio })
  }
  const growth = (row: string, median: number) =>
    rowOf({
      section: 'http2',
      row: `${row}: growth in the second half`,
      contender: 'beside attackers',
      median,
    })
  const judged = (rows: Parameters<typeof table.verdicts>[0]) =>
    table.verdicts(rows).map(({ holds }) => holds)
  assert.deepEqual(judged([]), [undefined, undefined])
  assert.deepEqual(judged([p99('a', 9.9), p99('b', 1)]), [true, undefined])
  assert.deepEqual(judged([p99('a', 1), p99('b', 10), growth('a', 32)]), [false, true])
  assert.deepEqual(judged([growth('a', 33), growth('b', -4)]), [undefined, false])
  const [waits] = table.verdicts([p99('a', 2), p99('b', 3)])
  assert.match(waits.measured, /worst: http, b: p99, 3\.0 ×/)
})
