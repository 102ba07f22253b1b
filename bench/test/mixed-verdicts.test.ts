/**
 * The demands on mixed values, and what the table sends.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/mixed.ts'
import { contendersOf } from '../tables/mixed/contenders.ts'
import { gapRows } from '../tables/mixed/gap.ts'
import { BYTES_COUNTS, LEAF_COUNTS, arrayRow, bytesRow, largeRows } from '../tables/mixed/large.ts'
import { MIXED_PAYLOADS, mixedObjects } from '../tables/mixed/payloads.ts'
import { PUBLIC_PAYLOADS } from '../tables/mixed/public.ts'
import { OBJECTS } from '../tables/transport/payloads.ts'
import type { Row } from '../harness/table.ts'
import { rowOf } from './rows.test.support.ts'

const judged = (rows: readonly Row[]) =>
  Object.fromEntries(table.verdicts!(rows).map(({ bar, holds }) => [bar, holds]))

/** Rows of all payloads, of which each takes `ratio` times its rival in both directions. */
function rowsAt(ratio: number, condition: string): Row[] {
  return MIXED_PAYLOADS.flatMap(({ label: row, isJson }) =>
    ['encode', 'decode'].map((section) => {
      const [to] = contendersOf({ label: row, isJson })
      return rowOf({ section, row, condition, ratio: { to, median: ratio, low: 0, high: 9 } })
    }),
  )
}

test('the geometric mean of all rows that JSON carries decides, for each direction and condition', () => {
  const warm = judged(rowsAt(0.5, 'warm'))
  assert.equal(warm['encode, warm: geometric mean ≤ 0.6 × JSON'], true)
  assert.equal(warm['decode, warm: geometric mean ≤ 0.4 × JSON'], false)
  assert.equal(warm['encode, after 100 values: geometric mean ≤ 1.2 × JSON'], undefined)
  assert.equal(warm['encode of one text of 40 characters: ≤ 1.2 × JSON'], true)
  const one = judged(rowsAt(0.5, 'warm').slice(1))
  assert.equal(one['encode, warm: geometric mean ≤ 0.6 × JSON'], undefined)
})

test('a payload that public data replaced does not count in the mean, its successor does', () => {
  const bar = 'encode, warm: geometric mean ≤ 0.6 × JSON'
  const rows = rowsAt(0.5, 'warm')
  const [{ label, replaces }] = PUBLIC_PAYLOADS
  assert.equal(judged(rows.filter(({ row }) => row !== replaces))[bar], true)
  assert.equal(judged(rows.filter(({ row }) => row !== label))[bar], undefined)
  const known = MIXED_PAYLOADS.map(({ label }) => label)
  assert.deepEqual(
    PUBLIC_PAYLOADS.filter((one) => !known.includes(one.replaces)),
    [],
  )
})

test('the gap is how much more of JSON’s time public payloads take, round by round', () => {
  const fixed = { row: 'encode', condition: 'warm' }
  const old = [
    { own: [1, 2], json: [2, 4] },
    { own: [2, 8], json: [1, 4] },
  ]
  const [replaced, published] = gapRows(fixed, old, [{ own: [3, 3, 9], json: [2, 2] }])
  assert.ok(Math.abs(replaced.median - 1) < 1e-9 && replaced.samples === 2)
  assert.ok(Math.abs(published.ratio!.median - 1.5) < 1e-9)
})

test('points may take 0.6 times as long as JSON at every length', () => {
  const bar = 'arrays of [x, y]: ≤ 0.6 × JSON'
  const at = (last: number): Row[] =>
    LEAF_COUNTS.flatMap((count) =>
      largeRows({ [arrayRow(count, '[x, y]')]: { corespun: [count === 40_000 ? last : 5], JSON: [10] } }),
    )
  assert.equal(judged(at(5))[bar], true)
  assert.equal(judged(at(7))[bar], false)
  assert.equal(judged(at(5).slice(2))[bar], undefined)
})

test('one row that takes a fifth longer than structuredClone fails the demand', () => {
  const at = (median: number): Row[] => [
    rowOf({
      section: 'round trip',
      row: 'issue',
      condition: 'warm',
      contender: 'structuredClone',
      median: 10,
    }),
    rowOf({ section: 'round trip', row: 'issue', condition: 'warm', contender: 'corespun', median }),
  ]
  const bar = 'warm: on no row more than 1.1 × structuredClone'
  assert.equal(judged(at(10.5))[bar], true)
  assert.equal(judged(at(12))[bar], false)
  assert.equal(judged([])[bar], undefined)
})

test('an element of a large array may cost a third more than one of 500; more bytes cost no more', () => {
  const us = (last: number): Row[] => [
    ...LEAF_COUNTS.flatMap((count) =>
      largeRows({ [arrayRow(count, '[x, y]')]: { corespun: [count === 40_000 ? last : 10], JSON: [20] } }),
    ),
    ...Object.keys(BYTES_COUNTS).flatMap((label, at) =>
      largeRows({ [bytesRow(label, 'read as a view')]: { corespun: [at === 0 ? 10 : last] } }),
    ),
  ]
  const bars = [
    'arrays of 500 to 40000 [x, y]: an element at most 1.3 × one of 500',
    'bytes read as a view: 16 MiB at most 2 × 64 KiB',
  ]
  const holds = (rows: readonly Row[]) => bars.map((bar) => judged(rows)[bar])
  assert.deepEqual(holds(us(12)), [true, true])
  assert.deepEqual(holds(us(14)), [false, true])
  assert.deepEqual(holds(us(21)), [false, false])
  assert.deepEqual(holds(us(12).slice(1, -1)), [undefined, undefined])
})

test('every payload has 64 objects of different content, half of them parsed where JSON carries them', () => {
  assert.ok(MIXED_PAYLOADS.length >= 25)
  for (const payload of MIXED_PAYLOADS) {
    const objects = mixedObjects(payload)
    assert.equal(objects.length, OBJECTS)
    assert.deepEqual(mixedObjects(payload), objects, payload.label)
    if (!payload.isJson) continue
    assert.equal(new Set(objects.map((object) => JSON.stringify(object))).size, OBJECTS, payload.label)
    assert.deepEqual(JSON.parse(JSON.stringify(objects)), objects, payload.label)
  }
})
