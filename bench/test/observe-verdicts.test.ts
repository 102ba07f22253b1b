/**
 * The demands on table observe: what counting costs, what a look costs, and the names in a profile.
 *
 * The rows are made here instead of by a run, at each bar and just beyond it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../harness/table.ts'
import { PINNED } from '../tables/http.ts'
import { CPU } from '../tables/http/verdicts.ts'
import table from '../tables/observe.ts'
import { rowOf } from './rows.test.support.ts'

const OBSERVED = 'corespun, observed'

function rows(beyond: 0 | 1): Row[] {
  const requests = ['hello', 'user'].map((section) => {
    const ratio = { to: 'corespun', median: 1.03 + beyond / 1000, low: 1, high: 2 }
    return rowOf({ section, row: CPU, contender: OBSERVED, condition: PINNED, ratio })
  })
  const call = (contender: string, median: number): Row =>
    rowOf({ section: 'call', row: 'CPU of both threads', contender, median })
  return [
    ...requests,
    call('corespun', 1000),
    call(OBSERVED, 1030 + beyond),
    rowOf({ section: 'scrape', row: 'the thread that responds', median: 5 + beyond }),
    rowOf({ section: 'scrape', row: 'another thread', median: 0.2 + beyond }),
    rowOf({ section: 'unused', median: beyond }),
    rowOf({ section: 'profile', median: 95 - beyond }),
  ]
}

const judged = (some: readonly Row[]): unknown[] => table.verdicts(some).map(({ holds }) => holds)

test('each bar holds at its figure, and not beyond it', () => {
  assert.deepEqual(judged(rows(0)), Array(7).fill(true))
  assert.deepEqual(judged(rows(1)), Array(7).fill(false))
})

test('what was not measured is not judged', () => {
  assert.deepEqual(judged([]), Array(7).fill(undefined))
})
