/**
 * The demands on table h2: against hyper and against node:http2, in each section.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/h2.ts'
import { rowOf } from './rows.test.support.ts'

test('requests are judged against hyper and against node:http2', () => {
  const of = (section: string, contender: string, median: number) =>
    rowOf({ section, row: 'CPU per 100,000', contender, median })
  const rows = [
    of('hello', 'corespun over HTTP/2', 1.14),
    of('hello', 'hyper over HTTP/2', 1),
    of('hello', 'node:http2', 3),
    of('one stream each', 'corespun over HTTP/2', 1.2),
    of('one stream each', 'hyper over HTTP/2', 1),
  ]
  const judged = table.verdicts(rows).map(({ holds }) => holds)
  assert.deepEqual(judged, [true, false, false, undefined])
})
