/**
 * Arguments on their way: large ones, moved and shared memory, and when they are written.
 *
 * One zone of two workers serves the whole file.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { thisBridge } from '../bridge/index.ts'
import { move, decode } from '../transport/index.ts'
import { zone } from './index.ts'

const here = zone.create('arguments', { workers: 2 })
after(() => here.close())

for (const size of [0, 255 * 1024, 256 * 1024, 257 * 1024, 5 * 1024 ** 2]) {
  test(`${size} bytes go and come, alone and in a batch, and through a broadcast`, async () => {
    const bytes = Uint8Array.from({ length: size }, (_, index) => index * 31)
    const echo = (value: Uint8Array, more: number) => [value, more] as const
    const all = await Promise.all([1, 2, 3].map((n) => here.run(echo, bytes, n)))
    for (const [index, [back, n]] of all.entries()) {
      assert.equal(n, index + 1)
      assert.deepEqual(back, bytes)
    }
    const { value } = await here.execute((value: Uint8Array) => value, [bytes])
    assert.deepEqual(value, bytes)
    await here.broadcast(
      (value: Uint8Array) => void ((globalThis as { size?: number }).size = value.length),
      [bytes],
    )
    assert.equal(await here.run(() => (globalThis as { size?: number }).size), size)
    await assert.rejects(
      here.run((value: Uint8Array) => Promise.reject(Object.assign(new Error('big'), { value })), bytes),
      (error) => {
        assert.deepEqual((error as { value?: unknown }).value, bytes)
        return true
      },
    )
  })
}

test('a call made while the arguments of another are written harms neither', async () => {
  let inner: Promise<string> | undefined
  const args = {
    before: 'b'.repeat(1000),
    get middle() {
      inner ??= here.run((text: string) => text, 'i'.repeat(3000))
      return 'm'
    },
    after: 'a'.repeat(1000),
  }
  const outer = await here.run((value: object) => value, args)
  assert.deepEqual(outer, {
    before: 'b'.repeat(1000),
    middle: 'm',
    after: 'a'.repeat(1000),
  })
  assert.equal(await inner, 'i'.repeat(3000))
})

test('memory moves with move(), is shared with SharedArrayBuffer, both ways, and is let go', async () => {
  const { native } = await import('../native/index.ts')
  const before = native.bufferCount()
  const moved = new Uint8Array(1000).fill(7)
  const answer = await here.run(
    (bytes: Uint8Array) => bytes.reduce((sum, byte) => sum + byte, 0),
    move(moved),
  )
  assert.deepEqual([answer, moved.length], [7000, 0])
  const back = await here.run(async () => {
    const { move } = await import('../transport/index.js')
    return move(new Uint8Array(500).fill(3))
  })
  assert.deepEqual(back, new Uint8Array(500).fill(3))
  const shared = new Int32Array(new SharedArrayBuffer(8))
  await Promise.all(
    [1, 2, 3, 4].map((n) =>
      here.run((cell: Int32Array, n: number) => void Atomics.add(cell, 0, n), shared, n),
    ),
  )
  assert.equal(shared[0], 10)
  const returned = await here.run((cell: Int32Array) => cell.buffer, shared)
  new Int32Array(returned as SharedArrayBuffer)[1] = 5
  assert.equal(shared[1], 5)
  const lazy = await here.execute((cell: Int32Array) => cell, [shared])
  assert.equal(Atomics.add(lazy.value, 0, 1), 10)
  await assert.rejects(
    here.run((_: unknown, bad: symbol) => bad, shared, Symbol('s')),
    { code: 'TRANSPORT_REFUSED' },
  )
  await here.run(() => {})
  assert.equal(native.bufferCount(), before)
})

test('memory that cannot be detached is not transportable, and not changed by asking', async () => {
  const { isTransportable, encode } = await import('../transport/index.ts')
  const { native } = await import('../native/index.ts')
  const before = native.bufferCount()
  type Memory = new (options: { initial: number }) => { readonly buffer: ArrayBuffer }
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: Memory } }
  const stuck = move(new WebAssembly.Memory({ initial: 1 }).buffer)
  assert.equal(isTransportable(stuck), false)
  assert.throws(() => encode(stuck, { mode: 'process' }), { code: 'TRANSPORT_REFUSED' })
  assert.deepEqual([stuck.byteLength, native.bufferCount()], [65_536, before])
})

test('memory that a frame of encode moved is let go when it has been read', async () => {
  const { native } = await import('../native/index.ts')
  const { isTransportable, encode } = await import('../transport/index.ts')
  const before = native.bufferCount()
  const moved = move(new Uint8Array(1000).fill(7))
  assert.ok(isTransportable(moved))
  assert.deepEqual([moved.length, native.bufferCount()], [1000, before])
  const frame = encode(moved, { mode: 'process' })
  assert.deepEqual([moved.length, native.bufferCount()], [0, before + 1])
  assert.deepEqual(decode(frame, { mode: 'process' }), new Uint8Array(1000).fill(7))
  assert.equal(native.bufferCount(), before)
  assert.throws(() => decode(frame, { mode: 'process' }), { code: 'TRANSPORT_MALFORMED' })
})

test('a refused call leaves moved memory where it was when the value is at fault', async () => {
  const kept = new Uint8Array(8).fill(1)
  await assert.rejects(here.run((..._: unknown[]) => {}, move(kept), Symbol('s')))
  assert.equal(kept.length, 8)
})

/** How often this thread writes a frame while `body` runs. */
async function framesWritten(body: () => Promise<unknown>): Promise<number> {
  const bridge = thisBridge()
  const { write } = bridge
  let count = 0
  bridge.write = (...given) => {
    count++
    return write.apply(bridge, given)
  }
  try {
    await body()
  } finally {
    bridge.write = write
  }
  return count
}

test('arguments are written once, for a call site that is new and for one that is not', async () => {
  const long = 'é'.repeat(300_000)
  const makers = [
    () => (n: number, text: string) => n + text.length,
    () => (n: number, text: string) => n - text.length,
  ]
  for (const [index, text] of ['short', long].entries()) {
    const make = makers[index]
    for (let turn = 0; turn < 3; turn++) {
      const fn = make()
      let value: number | undefined
      assert.equal(await framesWritten(async () => (value = await here.run(fn, 1, text))), 1)
      assert.equal(value, fn(1, text))
    }
  }
  // Arguments that did not fit are not those of the next call.
  assert.equal(await here.run((...given: unknown[]) => given.length), 0)
})

test('a call by a getter of the function that is sent leaves the arguments as they were', async () => {
  const inner: Promise<unknown>[] = []
  const outer = (a: string, b: number): unknown[] => [a, b]
  Object.defineProperty(outer, 'name', {
    get: () => {
      inner.push(here.run((text: string) => text, 'another text of another length'))
      return 'outer'
    },
  })
  assert.deepEqual(await here.run(outer, 'mine', 7), ['mine', 7])
  assert.ok(inner.length > 0)
  for (const value of await Promise.all(inner)) assert.equal(value, 'another text of another length')
})

test('a new call site whose arguments are too large is refused, and the next call runs', async () => {
  await using small = zone.create('arguments-small', { workers: 1, queueBytesMax: 1024 })
  const refused = small.run((text: string) => text.length, 'x'.repeat(2000))
  await assert.rejects(refused, { code: 'TASK_TOO_LARGE' })
  assert.equal(await small.run((text: string) => text.length + 1, 'x'), 2)
})
