/**
 * `decode(frame, { bytes: 'view' })`: which bytes of the value lie in the frame, and which are copies.
 *
 * A view is recognized by its buffer, which is that of the frame.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register } from './classes/classes.ts'
import { decode, encode } from './codec.ts'
import { FrameWriter, readFrame } from './frame.ts'
import './tables.test.support.ts'

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

test('views are of the frame, whatever a subclass of Uint8Array slices', () => {
  class Elsewhere extends Uint8Array {
    override subarray(): Uint8Array<ArrayBuffer> {
      return new Uint8Array(this.length)
    }
  }
  const frame = new Elsewhere(encode([new Uint8Array([7]), Buffer.from('x')]))
  const views = decode(frame, { bytes: 'view' }) as [Uint8Array, Buffer]
  assert.deepEqual(views, [new Uint8Array([7]), Buffer.from('x')])
  for (const view of views) assert.equal(view.buffer, frame.buffer)
})

test('bytes that a load hook takes away in between are malformed, not other memory', () => {
  class Shrinks {}
  const memory = new (ArrayBuffer as unknown as new (
    length: number,
    options: { maxByteLength: number },
  ) => ArrayBuffer & { resize(length: number): void })(1000, { maxByteLength: 1000 })
  register(Shrinks, { cid: 'views/Shrinks', save: () => 0, load: () => (memory.resize(10), new Shrinks()) })
  const bytes = encode([new Shrinks(), new Uint8Array(100)])
  const frame = new Uint8Array(memory, 0, bytes.length)
  frame.set(bytes)
  assert.throws(() => decode(frame, { bytes: 'view' }), { code: 'TRANSPORT_MALFORMED' })
})

test('frames of a zone and of stores are never views: later frames do not change what was read', () => {
  const scratch = new Uint8Array(1024)
  const writer = new FrameWriter(scratch)
  const end = writer.write([new Uint8Array([1, 2]), Buffer.from('ab')], 0)
  decode(encode(new Uint8Array(1)), { bytes: 'view' })
  const read = readFrame(scratch, 0, end)
  scratch.fill(0xff)
  assert.deepEqual(read, [new Uint8Array([1, 2]), Buffer.from('ab')])
})

test('a large frame is not changed by later ones, also when a save hook encodes in between', () => {
  class Saves {
    readonly bytes = new Uint8Array(100_000).fill(1)
  }
  register(Saves, {
    cid: 'views/Saves',
    save: ({ bytes }) => encode(bytes),
    load: () => new Saves(),
  })
  const frames = [2, 3].map((fill) => encode([new Saves(), new Uint8Array(200_000).fill(fill)]))
  const before = frames.map((frame) => frame.slice())
  for (let round = 0; round < 4; round++) encode([new Saves(), 'other'.repeat(50_000), round])
  assert.deepEqual(frames, before)
  assert.equal(new Set(frames.map(({ buffer }) => buffer)).size, 2)
})
