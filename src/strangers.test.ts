/**
 * Frames of strangers that name stores, zones, functions and memory of this process: all are refused, and
 * nothing has happened by then.
 *
 * The forged frames are the exact bytes that threads hand to each other, so the numbers in them are right:
 * a stranger who guesses no better has no better chance.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { move, store, zone } from './index.ts'
import { native } from './native/index.ts'
import { processFrame, readFrame } from './transport/internal.ts'
import { encode, decode } from './transport/index.ts'

const here = zone.create('strangers', { workers: 1 })
after(() => here.close())

/** Of docs/design/transport.md. */
const TOKEN_BYTES = 8

const MODES = [undefined, {}, { mode: 'self-contained' }, { mode: 'process' }] as const

/** `frame` is refused in every one of `modes`, and once more: a refusal has used nothing up. */
function refused(frame: Uint8Array, modes: readonly (typeof MODES)[number][] = MODES): void {
  for (const options of modes) {
    for (let round = 0; round < 2; round++)
      assert.throws(() => decode(frame, options), { code: 'TRANSPORT_PROCESS_FRAME' })
  }
}

const sessions = store.create('strangers.sessions')
sessions.set('admin', { token: 's3cret' })
const shared = new SharedArrayBuffer(4)

const values: readonly (readonly [string, unknown])[] = [
  ['a store', sessions],
  ['a zone', here],
  ['a function', (a: number) => a + 1],
  ['shared memory', shared],
  ['a plain value', { a: [1, 'b'] }],
]

for (const [what, value] of values) {
  test(`${what} cannot be had by a forged frame`, () => {
    const inside = processFrame([value])
    assert.ok(Array.isArray(readFrame(inside, 0, inside.length)), 'the forged numbers are right')
    refused(inside)
    const frame = encode([value], { mode: 'process' })
    assert.equal(frame.length, inside.length + TOKEN_BYTES)
    refused(frame, MODES.slice(0, 3))
    assert.ok(Array.isArray(decode(frame, { mode: 'process' })))
    for (let at = frame.length - TOKEN_BYTES; at < frame.length; at++) {
      const forged = Uint8Array.from(frame)
      forged[at] ^= 1
      refused(forged)
    }
    const { length } = frame
    for (const cut of [TOKEN_BYTES, length - TOKEN_BYTES, length - 1]) refused(frame.subarray(0, cut))
    const claimed = Uint8Array.from(inside)
    claimed[1] = 2
    refused(claimed)
    refused(Uint8Array.from([...claimed, ...new Uint8Array(TOKEN_BYTES)]))
    claimed[1] = 1
    if (what !== 'a plain value')
      assert.throws(() => decode(claimed, { mode: 'process' }), { code: 'TRANSPORT_MALFORMED' })
  })
}

test('memory that another call has moved is still there after every forged frame', () => {
  const inside = processFrame(move(new Uint8Array(1000).fill(7)))
  const held = native.bufferCount()
  refused(inside)
  // All numbers that there are: the id of the memory is the last word of the body.
  const view = new DataView(inside.buffer)
  const forged = Uint8Array.from(inside)
  const at = inside.length - 4
  for (let id = 0; id <= view.getUint32(at, true) + 10; id++) {
    new DataView(forged.buffer).setUint32(at, id, true)
    assert.throws(() => decode(forged, { mode: 'process' }), { code: 'TRANSPORT_PROCESS_FRAME' })
  }
  assert.equal(native.bufferCount(), held)
  assert.deepEqual(readFrame(inside, 0, inside.length), new Uint8Array(1000).fill(7))
})

test('every thread of the process reads the frames of the others', async () => {
  const frame = await here.run(async () => {
    const { encode } = await import('corespun/transport')
    return encode({ from: 'a worker', shared: new SharedArrayBuffer(2) }, { mode: 'process' })
  })
  const value = decode(frame, { mode: 'process' }) as { from: string; shared: SharedArrayBuffer }
  assert.deepEqual([value.from, value.shared.byteLength], ['a worker', 2])
})

test('self-contained frames are read in either mode', () => {
  assert.deepEqual(decode(encode({ a: 1 }), { mode: 'process' }), { a: 1 })
  assert.throws(() => decode(encode(1), { mode: 'fast' as 'process' }), { code: 'TRANSPORT_ARGUMENT' })
})
