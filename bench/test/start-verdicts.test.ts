/**
 * The demands on start-up: each is judged by its own row, and by none that was not measured.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../harness/table.ts'
import table, { verdicts } from '../tables/start.ts'
import { rowOf } from './rows.test.support.ts'

const whole = (contender: string, median: number): Row =>
  rowOf({ section: 'import', row: 'whole process', contender, median })

test('nothing is judged without its row', () => {
  assert.deepEqual(new Set(verdicts([]).map(({ holds }) => holds)), new Set([undefined]))
})

test('a demand is judged by the row of its own contender and section', () => {
  const rows = [
    whole('corespun/zone', 45),
    whole('corespun', 61),
    rowOf({ section: 'import', row: 'CPU', contender: 'corespun', median: 1 }),
    rowOf({ section: 'server', contender: 'corespun/http', median: 150 }),
    rowOf({ section: 'server', contender: 'corespun serve', median: 151 }),
    rowOf({ section: 'memory', row: 'each worker', contender: 'corespun/zone', unit: 'MB', median: 12.6 }),
  ]
  const judged = verdicts(rows).map(({ bar, holds }) => [bar, holds])
  assert.deepEqual(
    judged.filter(([, holds]) => holds !== undefined),
    [
      ['import of the zone door ≤ 45 ms', true],
      ['import of the root ≤ 60 ms', false],
      ['first response of a server ≤ 150 ms', true],
      ['first response of `corespun serve` ≤ 150 ms', false],
      ['memory of each worker ≤ 12.5 MB', false],
    ],
  )
})

test('every section that has rows is defined', () => {
  assert.deepEqual(Object.keys(table.definitions), [
    'import',
    'first result',
    'command',
    'server',
    'memory',
    'ratio',
  ])
})
