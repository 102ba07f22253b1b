/**
 * Which ids are remembered: the last ones, as many as were asked for at least, and not for ever. A host
 * finds out by them which messages come twice.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Recent } from './recent.ts'

test('the last ids are known, each time, and old ones are forgotten', () => {
  const recent = new Recent(10)
  for (let id = 0; id < 100; id += 1) {
    assert.equal(recent.add(String(id)), true)
    for (let before = Math.max(0, id - 9); before <= id; before += 1)
      assert.equal(recent.add(String(before)), false, `${before} after ${id}`)
  }
  assert.equal(recent.add('50'), true)
})
