/**
 * The transform of jest as jest calls it.
 * jest itself runs in test/plugin.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import transformer from './jest.ts'

test('options are refused by name, as jest would drop them', () => {
  assert.equal(transformer.createTransformer(), transformer)
  assert.equal(transformer.createTransformer({}), transformer)
  assert.throws(() => transformer.createTransformer({ transformer: 'babel-jest' }), {
    name: 'TypeError',
    message: /^corespun\/plugin\/jest takes no options, received transformer: /,
  })
})
