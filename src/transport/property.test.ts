/**
 * What must hold for every value and every damage, tried on those that fast-check makes.
 *
 * Damage is not shrunk: the seed that is printed repeats it, and shrinking takes minutes.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { share } from '../base/part.test.support.ts'
import { anyValue } from './arbitrary.test.support.ts'
import { decode, encode } from './codec.ts'
import { FrameWriter, readFrame } from './frame.ts'
import { setFirstLeaves } from './write/kinds.ts'
import { damaged, randomFrom, frameIn, readHostile } from './hostile.test.support.ts'
import { assertSame } from './same.test.support.ts'
import './tables.test.support.ts'

const modes = ['process', 'self-contained'] as const

/** As a thread writes its first values, and all others. */
const ways = [
  ['by JSON and plain loops', Infinity, Infinity],
  ['by shapes', 0, 0],
  ['first one way, then the other', 10_000, 300],
] as const

for (const mode of modes) {
  for (const [way, leaves, ofKind] of ways) {
    test(`${mode}, ${way}: for any value, the far side equals the near side`, () => {
      setFirstLeaves(leaves, ofKind)
      fc.assert(
        fc.property(anyValue({ mode }), (value) =>
          assertSame(decode(encode(value, { mode }), { mode }), value),
        ),
        { numRuns: share(300) },
      )
    })

    test(`${mode}, ${way}: a value whose bytes are views of the frame equals the copy`, () => {
      setFirstLeaves(leaves, ofKind)
      fc.assert(
        fc.property(anyValue({ mode }), (value) => {
          const frame = encode(value, { mode })
          const before = frame.slice()
          assertSame(decode(frame, { mode, bytes: 'view' }), decode(frame, { mode }), false)
          assert.deepEqual(frame, before)
        }),
        { numRuns: share(200) },
      )
    })

    test(`${mode}, ${way}: the far side of the far side is the far side`, () => {
      setFirstLeaves(leaves, ofKind)
      fc.assert(
        fc.property(anyValue({ mode }), (value) => {
          const far = decode(encode(value, { mode }), { mode })
          assertSame(decode(encode(far, { mode }), { mode }), far)
        }),
        { numRuns: share(200) },
      )
    })

    test(`${mode}, ${way}: a damaged frame is a value or a TransportError, nothing else`, () => {
      setFirstLeaves(leaves, ofKind)
      fc.assert(
        fc.property(
          anyValue({ mode, moves: true }),
          anyValue({ mode, moves: true }),
          fc.integer(),
          (value, otherValue, seed) => {
            const random = randomFrom(seed)
            const [frame, other] = [frameIn(mode, value), frameIn(mode, otherValue)]
            for (let round = 0; round < 50; round++) readHostile(damaged(frame, other, random))
          },
        ),
        { numRuns: share(200), endOnFailure: true },
      )
    })
  }

  test(`${mode}: a frame cut anywhere is a TransportError`, () => {
    fc.assert(
      fc.property(anyValue({ mode }), (value) => {
        const frame = frameIn(mode, value)
        const step = Math.max(1, frame.length >> 7)
        for (let end = 0; end < frame.length; end += step) {
          assert.throws(() => readFrame(frame, 0, end), { name: 'TransportError' })
        }
      }),
      { numRuns: share(100) },
    )
  })
}

test('a frame between other bytes is read as if it were alone', () => {
  const scratch = new Uint8Array(1 << 20)
  const writer = new FrameWriter(scratch)
  fc.assert(
    fc.property(anyValue({ mode: 'process' }), fc.nat(1000), (value, offset) => {
      scratch.fill(0xff, 0, 4096)
      const end = writer.write(value, offset)
      assert.ok(end > offset)
      scratch.fill(0xff, end, end + 64)
      assertSame(readFrame(scratch, offset, end), value)
    }),
    { numRuns: share(500) },
  )
})

test('a frame that does not fit is whole in overflow and leaves what lies behind untouched', () => {
  fc.assert(
    fc.property(anyValue({ mode: 'process' }), fc.nat(200), (value, room) => {
      const memory = new Uint8Array(room + 64).fill(0xab)
      const writer = new FrameWriter(memory.subarray(0, room))
      const end = writer.write(value, 0)
      if (end >= 0) assertSame(readFrame(memory, 0, end), value)
      else assertSame(readFrame(writer.overflow as Uint8Array, 0, writer.frameBytes), value)
      assert.ok(memory.subarray(room).every((byte) => byte === 0xab))
    }),
    { numRuns: share(500) },
  )
})
