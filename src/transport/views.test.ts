/**
 * `decode(frame, { bytes: 'view' })`: which bytes of the value lie in the frame, and which are copies.
 *
 * A view is recognized by its buffer, which is that of the frame.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from './codec.ts'

const value = () => ({
  bytes: new Uint8Array([1, 2, 3]),
  part: Buffer.from('part of a pool'),
  floats: new Float64Array([0.5]),
  buffer: new Uint8Array([4]).buffer,
})

for (const mode of ['process', 'self-contained'] as const) {
  test(`Uint8Arrays and Buffers are views of the frame where the caller asks, ${mode}`, () => {
    const frame = encode(value(), { mode })
    const views = decode(frame, { mode, bytes: 'view' }) as ReturnType<typeof value>
    assert.deepEqual(views, value())
    for (const view of [views.bytes, views.part]) assert.equal(view.buffer, frame.buffer)
    for (const { buffer } of [views.floats, { buffer: views.buffer }])
      assert.notEqual(buffer, frame.buffer, 'what a view cannot be is a copy')
    views.bytes[0] = 9
    const copies = decode(frame, { mode }) as ReturnType<typeof value>
    assert.deepEqual([...copies.bytes], [9, 2, 3])
    for (const copy of [copies.bytes, copies.part]) assert.notEqual(copy.buffer, frame.buffer)
  })
}

test('views of a frame that is a Buffer are plain Uint8Arrays', () => {
  const frame = Buffer.from(encode([new Uint8Array([1]), Buffer.from('x')]))
  const [bytes, buffer] = decode(frame, { bytes: 'view' }) as [Uint8Array, Buffer]
  assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype)
  assert.ok(Buffer.isBuffer(buffer))
  assert.deepEqual([bytes.buffer, buffer.buffer], [frame.buffer, frame.buffer])
})

test('one view that occurs twice is one view', () => {
  const twice = new Uint8Array([7])
  const [first, second] = decode(encode([twice, twice]), { bytes: 'view' }) as [Uint8Array, Uint8Array]
  assert.equal(first, second)
})

test('a frame that ends within bytes is refused', () => {
  const frame = encode(new Uint8Array(100))
  for (let length = 0; length < frame.length; length += 7)
    assert.throws(() => decode(frame.subarray(0, length), { bytes: 'view' }), { code: 'TRANSPORT_MALFORMED' })
})

test('another word than copy and view is refused', () => {
  assert.throws(() => decode(encode(1), { bytes: 'shared' as 'view' }), {
    code: 'TRANSPORT_ARGUMENT',
    message: /bytes/,
  })
})

test('a frame of more than the memory of an idle writer arrives in both modes', () => {
  const large = { bytes: new Uint8Array(200_000).fill(3), end: 'text' }
  for (const mode of ['process', 'self-contained'] as const) {
    const frame = encode(large, { mode })
    assert.deepEqual(decode(frame, { mode }), large)
    assert.equal(frame.byteLength, frame.buffer.byteLength, 'the frame has memory of its own')
  }
})
