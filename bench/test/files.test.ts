/**
 * The items of table `files`: as many as asked for, different, and a loop that depends on every round.
 *
 * A bench whose work is wrong measures nothing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemsOf, spin } from '../contenders/files/items.ts'
import { digestOf, itemsOfKind } from '../contenders/files/main.ts'

test('items have 64 shapes, and the same ones come again', () => {
  const items = itemsOf(128, 20)
  assert.equal(new Set(items.map((item) => Object.keys(item).join())).size, 64)
  assert.deepEqual(itemsOfKind('20', 128, ''), items)
})

test('the mix has items from 20 µs to 5 ms', () => {
  const all = itemsOf(2000, 'mix').map(({ rounds }) => rounds / 450)
  assert.ok(Math.min(...all) >= 20 && Math.min(...all) < 100)
  assert.ok(Math.max(...all) <= 5000 && Math.max(...all) > 4900)
})

test('the work depends on every round, and the digest on every value and their order', () => {
  const [one, other] = itemsOf(2, 1).map(spin)
  assert.notEqual(spin({ id: 0, rounds: 450 }).hash, spin({ id: 0, rounds: 449 }).hash)
  assert.equal(new Set([[one, other], [other, one], [one], []].map(digestOf)).size, 4)
})
