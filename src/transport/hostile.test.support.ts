/**
 * Reads bytes that nobody vouches for and fails when that does any harm.
 *
 * Shared by the tests and the fuzzer. Harm is: an error that is no TransportError, a changed
 * Object.prototype, a value much larger than its bytes, or a value that cannot be looked at.
 */
import assert from 'node:assert/strict'
import { types } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { TransportError } from './errors.ts'
import { decode, encode } from './codec.ts'
import { processFrame, readFrame } from './frame.ts'

/** Objects that one byte of a frame may become; a text may be a slice of its own for each byte. */
const OBJECTS_PER_BYTE_MAX = 2

/** What bytes might try to change, and the keys these had before any were read, enumerable or not. */
const prototypes = [Object.prototype, Array.prototype, Function.prototype, Error.prototype, Map.prototype]
const prototypeKeys = prototypes.map((prototype) => Reflect.ownKeys(prototype))

/** Bytes of the heap after a garbage collection. */
export function memoryInUse(): number {
  const collect = (globalThis as { gc?: () => void }).gc ?? exposed()
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

function exposed(): () => void {
  // Garbage collection on demand without a flag on the command line of the whole test run.
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

/** An ArrayBuffer that cannot be detached. */
export function wasmMemory(): ArrayBuffer {
  type Memory = new (options: { initial: number }) => { readonly buffer: ArrayBuffer }
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: Memory } }
  return new WebAssembly.Memory({ initial: 1 }).buffer
}

/** Address space that resizable buffers of a value may reserve, beyond 64 times the bytes of the frame. */
const RESERVED_MAX = 0x1000_0000

/** The frame of `value`; one of this process as threads hand them to each other. */
export function frameIn(mode: 'process' | 'self-contained', value: unknown): Uint8Array {
  return mode === 'process' ? processFrame(value) : encode(value)
}

/**
 * Read `bytes` as threads read what they hand to each other; true when they were a frame. `decode` must
 * refuse them unless they are self-contained.
 */
export function readHostile(bytes: Uint8Array): boolean {
  for (const mode of bytes[1] === 1 ? [] : (['self-contained', 'process'] as const))
    assert.throws(() => decode(bytes, { mode }), TransportError)
  let value: unknown
  try {
    if (bytes[1] === 1) decode(bytes, { bytes: 'view' })
    value = readFrame(bytes, 0, bytes.length)
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    return false
  } finally {
    for (const [index, prototype] of prototypes.entries()) {
      const [keys, keysBefore] = [Reflect.ownKeys(prototype), prototypeKeys[index]]
      if (keys.length !== keysBefore.length) assert.deepEqual(keys, keysBefore, 'a prototype was changed')
    }
    assert.equal(Object.getPrototypeOf(Object.prototype), null)
  }
  const size = sizeOf(value)
  assert.ok(
    size.objects <= bytes.length * OBJECTS_PER_BYTE_MAX,
    `${size.objects} objects from ${bytes.length} bytes`,
  )
  assert.ok(size.characters <= bytes.length * 2, `${size.characters} characters from ${bytes.length} bytes`)
  assert.ok(size.reserved <= RESERVED_MAX + bytes.length * 64, `${size.reserved} bytes reserved`)
  assert.ok(size.resizable <= 64, `${size.resizable} resizable buffers`)
  return true
}

/** What a value holds, each object once. */
function sizeOf(root: unknown): { objects: number; characters: number; reserved: number; resizable: number } {
  const seen = new Set<object>()
  const waiting: unknown[] = [root]
  let [characters, reserved, resizable] = [0, 0, 0]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') characters += value.length
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    if (types.isAnyArrayBuffer(value)) {
      // Memory of the process is not the frame's.
      if (types.isSharedArrayBuffer(value)) continue
      characters += value.byteLength
      const { maxByteLength, resizable: canGrow } = value as { maxByteLength?: number; resizable?: boolean }
      if (canGrow === true) [reserved, resizable] = [reserved + (maxByteLength as number), resizable + 1]
    } else if (types.isMap(value)) for (const [key, part] of value) waiting.push(key, part)
    else if (types.isSet(value)) for (const part of value) waiting.push(part)
    else if (ArrayBuffer.isView(value)) waiting.push(value.buffer)
    else for (const key of Object.keys(value)) waiting.push((value as Record<string, unknown>)[key])
  }
  return { objects: seen.size, characters, reserved, resizable }
}

/** Pseudo-random numbers from 0 to `below`, the same for the same seed (xorshift). */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed | 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** A copy of `frame` that something happened to; `other` lends bytes. */
export function damaged(frame: Uint8Array, other: Uint8Array, random: (below: number) => number): Uint8Array {
  const bytes = Uint8Array.from(frame)
  switch (random(6)) {
    case 0:
      return bytes.subarray(0, random(bytes.length))
    case 1:
      bytes[random(bytes.length)] ^= 1 << random(8)
      return bytes
    case 2:
      for (let times = random(4) + 1; times > 0; times--) bytes[random(bytes.length)] = random(256)
      return bytes
    case 3: {
      const at = random(bytes.length)
      return Uint8Array.from([
        ...bytes.subarray(0, at),
        ...other.subarray(random(other.length)),
        ...bytes.subarray(at),
      ])
    }
    case 4: {
      // Lengths are where the harm is: all ones, or a large number.
      const at = random(bytes.length)
      bytes.fill(random(2) === 0 ? 0xff : random(256), at, at + 1 + random(4))
      return bytes
    }
    default: {
      const at = random(bytes.length)
      bytes.copyWithin(at, random(bytes.length), random(bytes.length))
      // The tag at the beginning stays what it is, so that more than the header is read.
      bytes.set(frame.subarray(0, 6))
      return bytes
    }
  }
}
