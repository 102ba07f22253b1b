/**
 * The demands on mixed values, and what the table sends.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/mixed.ts'
import { contendersOf } from '../tables/mixed/contenders.ts'
import { MIXED_PAYLOADS, mixedObjects } from '../tables/mixed/payloads.ts'
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
