/**
 * A document that is written as bytes is the one that strings make: the oracle is their concatenation, with
 * numbers of all sizes, and texts that are not ASCII.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Bytes } from './bytes.ts'

test('texts and numbers are written as strings have them, and what was written can be repeated', () => {
  const values = [0, 7, 10, 99, 100, 12_345, 999_999_999, 1e9, 2 ** 53, 1e21, -1, 0.5, 1e-7, NaN, Infinity]
  for (const room of [0, 1, 10_000]) {
    const bytes = new Bytes(room)
    let text = ''
    for (const value of values) {
      const from = bytes.at
      bytes.text(`é${value}\u{1F600} `)
      bytes.number(value)
      const to = bytes.at
      bytes.ascii(Buffer.from('; '))
      bytes.again(from, to)
      text += `é${value}\u{1F600} ${value}; é${value}\u{1F600} ${value}`
    }
    assert.equal(bytes.whole().toString(), text)
    assert.equal(bytes.at, Buffer.byteLength(text))
  }
})
