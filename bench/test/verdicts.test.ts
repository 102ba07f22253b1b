/**
 * The demands on zones: not judged while a rival has no figure, in both forms, and for every count of calls.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Row } from '../harness/table.ts'
import { SUM_ROW } from '../tables/execute/parts.ts'
import { KNITTING, POOLS } from '../tables/execute/plan.ts'
import { verdicts } from '../tables/execute/verdicts.ts'
import { rowOf } from './rows.test.support.ts'

function holds(rows: readonly Row[], bar: string): (boolean | undefined)[] {
  return verdicts(rows)
    .filter((verdict) => verdict.bar.startsWith(bar))
    .map((verdict) => verdict.holds)
}

test('CPU per task below every pool is judged when every pool has a figure, for both forms', () => {
  const bar = 'CPU per task below every pool: sequential, one core, 1 threads'
  const of = (contender: string, cpuUs: number): Row =>
    rowOf({ section: 'sequential', condition: 'one core', contender, cpuUs })
  const pools = POOLS.filter((name) => name !== 'corespun').map((name) => of(name, 5))
  const own = [of('corespun', 4), of('corespun run(fn)', 6)]
  assert.deepEqual(holds([...own, ...pools], bar), [true, false])
  assert.deepEqual(holds([...own, ...pools.slice(1)], bar), [undefined, false])
  const installable = pools.filter(({ contender }) => contender !== KNITTING)
  assert.deepEqual(holds([...own, ...installable], bar), [true, false])
  assert.deepEqual(holds([...own, { ...of('direct', 9), threads: 0 }], bar), [undefined, undefined])
})

test('anonymous calls are judged against named ones for every count', () => {
  const of = (calls: number, words: string, median: number): Row =>
    rowOf({ section: 'overhead', row: `${calls} calls ${words}, one by one`, median })
  const rows = [200, 5000, 10_000].flatMap((calls) => [
    of(calls, 'named', 100),
    of(calls, 'anonymous', calls === 5000 ? 106 : 104),
  ])
  assert.deepEqual(holds(rows, 'anonymous ≤ 1.05 × named'), [true, false, true, undefined])
})

test('the parts are judged by their own sum, which may miss the whole', () => {
  const of = (median: number): Row => rowOf({ section: 'parts', row: SUM_ROW, median })
  assert.deepEqual(holds([of(1.09)], 'the six parts'), [true])
  assert.deepEqual(holds([of(1.05), of(1.12)], 'the six parts'), [false])
  assert.deepEqual(holds([rowOf({ section: 'parts', row: 'parts / whole' })], 'the six parts'), [undefined])
})
