/**
 * The work that contenders are measured with: its answers against independent ones.
 *
 * A bench whose work is wrong measures nothing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import { churn, crc32, crcMany, foldCrc, mixed } from '../contenders/work.ts'
import { CRC_TEXT, expectedCrc } from '../tables/execute/scaling.ts'

test('the CRC-32 is the one that everybody computes', () => {
  assert.equal(crc32('123456789'), 0xcbf43926)
  assert.equal(crc32(''), 0)
  if (typeof zlib.crc32 === 'function') assert.equal(crc32(CRC_TEXT), zlib.crc32(CRC_TEXT))
})

test('the text has 1024 characters of more than one kind', () => {
  assert.equal(CRC_TEXT.length, 1024)
  assert.ok(new Set(CRC_TEXT).size > 30)
})

test('many CRCs fold into the expected number, and one less does not', () => {
  assert.equal(crcMany({ text: CRC_TEXT, count: 100 }), expectedCrc(100))
  assert.notEqual(crcMany({ text: CRC_TEXT, count: 99 }), expectedCrc(100))
  assert.equal(foldCrc(0, 7), 7)
})

test('the mixed loop and the churn depend on every turn', () => {
  assert.equal(new Set([0, 1, 2, 3, 500].map((rounds) => mixed({ rounds }))).size, 5)
  assert.equal(new Set([0, 1, 2, 3, 500].map(churn)).size, 5)
  assert.equal(churn(2), (Math.imul((Math.imul(1, 1664525) + 1013904223) | 0, 1664525) + 1013904223) | 0)
})
