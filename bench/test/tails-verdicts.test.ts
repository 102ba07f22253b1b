/**
 * The demand on p99: against uWebSockets.js, and against hyper only where that was not measured.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/tails.ts'
import { rowOf } from './rows.test.support.ts'

test('p99 is judged against uWebSockets.js, or hyper where it is missing', () => {
  const of = (section: string, contender: string, median: number) =>
    rowOf({ section, contender, row: 'p99', unit: 'µs', median })
  const rows = [
    of('hello, 8 connections', 'corespun serve', 129),
    of('hello, 8 connections', 'corespun serve --parallel-gc', 900),
    of('hello, 8 connections', 'uWebSockets.js', 100),
    of('hello, 8 connections', 'hyper', 50),
    of('hello, 100 connections', 'corespun serve', 131),
    of('hello, 100 connections', 'hyper', 100),
    of('user, 8 connections', 'corespun serve', 1),
  ]
  const judged = table.verdicts(rows).map(({ bar, holds }) => [bar, holds])
  assert.deepEqual(judged, [
    ['hello, 8 connections: p99 at most 1.3 × uWebSockets.js', true],
    ['hello, 100 connections: p99 at most 1.3 × hyper', false],
    ['user, 8 connections: p99 at most 1.3 × uWebSockets.js', undefined],
    ['user, 100 connections: p99 at most 1.3 × uWebSockets.js', undefined],
  ])
})
