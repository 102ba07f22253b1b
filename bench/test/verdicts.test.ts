/**
 * The demands on zones: not judged while a rival has no figure, in both forms, and for every count of calls.
 *
 * Rows made here stand for those of a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../harness/table.ts'
import { POOLS } from '../tables/execute/plan.ts'
import { verdicts } from '../tables/execute/verdicts.ts'

function row(traits: Partial<Row>): Row {
  return {
    section: 'sequential',
    row: 'p50',
    contender: 'skein',
    condition: 'one core',
    threads: 1,
    unit: 'µs',
    better: 'lower',
    median: 1,
    low: 1,
    high: 1,
    samples: 9,
    ...traits,
  }
}

function holds(rows: readonly Row[], bar: string): (boolean | undefined)[] {
  return verdicts(rows)
    .filter((verdict) => verdict.bar.startsWith(bar))
    .map((verdict) => verdict.holds)
}

test('CPU per task below every pool is judged when every pool has a figure, for both forms', () => {
  const bar = 'CPU per task below every pool: sequential, one core, 1 threads'
  const pools = POOLS.filter((name) => name !== 'skein').map((contender) => row({ contender, cpuUs: 5 }))
  const own = [row({ cpuUs: 4 }), row({ contender: 'skein run(fn)', cpuUs: 6 })]
  assert.deepEqual(holds([...own, ...pools], bar), [true, false])
  assert.deepEqual(holds([...own, ...pools.slice(1)], bar), [undefined, false])
  assert.deepEqual(holds([...own, row({ contender: 'direct', threads: 0, cpuUs: 9 })], bar), [
    undefined,
    undefined,
  ])
})

test('anonymous calls are judged against named ones for every count', () => {
  const of = (calls: number, words: string, median: number): Row =>
    row({ section: 'overhead', row: `${calls} calls ${words}, one by one`, median })
  const rows = [200, 5000, 10_000].flatMap((calls) => [
    of(calls, 'named', 100),
    of(calls, 'anonymous', calls === 5000 ? 106 : 104),
  ])
  assert.deepEqual(holds(rows, 'anonymous ≤ 1.05 × named'), [true, false, true, undefined])
})

test('the parts are judged by their own sum, which may miss the whole', () => {
  const of = (median: number): Row => row({ section: 'parts', row: 'sum of the parts / whole', median })
  assert.deepEqual(holds([of(1.09)], 'the six parts'), [true])
  assert.deepEqual(holds([of(1.05), of(1.12)], 'the six parts'), [false])
  assert.deepEqual(holds([row({ section: 'parts', row: 'parts / whole' })], 'the six parts'), [undefined])
})
