/**
 * The payloads of table `transport` are what its definitions progress: 64 different contents, the seed's
 * first.
 *
 * Equal contents would let a codec, or the engine below it, remember instead of work.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OBJECTS, REAL_PAYLOADS, SEED_PAYLOADS, objectsOf } from '../tables/transport/payloads.ts'

test('the objects of a payload differ, as far as its values leave room', () => {
  for (const payload of [...SEED_PAYLOADS, ...REAL_PAYLOADS]) {
    const contents = new Set(objectsOf(payload, 'assigned').map((object) => JSON.stringify(object)))
    assert.equal(contents.size, payload.label.includes('- 5 booleans') ? 32 : OBJECTS, payload.label)
  }
})

test('the first object of integers and of booleans is that of the report', () => {
  for (const payload of SEED_PAYLOADS) {
    let leaf = objectsOf(payload, 'assigned')[0] as Record<string, unknown>
    while (typeof leaf['key0'] === 'object') leaf = leaf['key0'] as Record<string, unknown>
    const values = Object.values(leaf)
    if (payload.label.includes('integers')) assert.deepEqual(values, [...values.keys()])
    if (payload.label.includes('booleans'))
      assert.deepEqual(
        values,
        [...values.keys()].map((key) => key % 2 === 0),
      )
  }
})

test('all objects of integers are equally long as text', () => {
  for (const payload of SEED_PAYLOADS.filter(({ label }) => label.includes('integers'))) {
    const lengths = new Set(objectsOf(payload, 'parsed').map((object) => JSON.stringify(object).length))
    assert.equal(lengths.size, 1, payload.label)
  }
})
