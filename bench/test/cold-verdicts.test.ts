/**
 * The demands on first values: the ratio to JSON decides, for each row, condition and direction alone.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/cold.ts'
import { rowOf } from './rows.test.support.ts'

const JSON_RATIO = { to: 'JSON', low: 1, high: 9 }

test('a first page may take three times as long as JSON, later ones one and a half times', () => {
  const of = (section: string, row: string, condition: string, median: number) =>
    rowOf({ section, row, condition, ratio: { ...JSON_RATIO, median } })
  const rows = [
    of('encode', 'first page of 20 users', 'new process', 2.9),
    of('decode', 'first page of 20 users', 'new process', 3.1),
    of('encode', 'pages 2 to 300', 'new worker', 1.6),
    of('decode', 'pages 2 to 300', 'new worker', 1.5),
  ]
  const judged = Object.fromEntries(table.verdicts(rows).map(({ bar, holds }) => [bar, holds]))
  assert.equal(Object.keys(judged).length, 28)
  assert.equal(judged['encode of first page of 20 users, new process: ≤ 3 × JSON'], true)
  assert.equal(judged['decode of first page of 20 users, new process: ≤ 3 × JSON'], false)
  assert.equal(judged['encode of pages 2 to 300, new worker: ≤ 1.5 × JSON'], false)
  assert.equal(judged['decode of pages 2 to 300, new worker: ≤ 1.5 × JSON'], true)
  assert.equal(judged['encode of first page of 20 users, new worker: ≤ 3 × JSON'], undefined)
})
