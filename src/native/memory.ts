/**
 * Memory that JavaScript and the core share: the core owns it, JavaScript sees ArrayBuffers.
 *
 * A program that replaces methods of Uint8Array gets hold of these buffers. It can write nonsense into them,
 * but the core frees the memory only when it no longer refers to it. Node refuses to post or clone such a
 * buffer; byte streams and `transfer` can detach it, and the next use then throws `NATIVE_DETACHED`.
 */
import type { Binding } from './binding.ts'
import { NativeError } from './errors.ts'

/** One zeroed region for each length, in one buffer: detaching it detaches all of them. */
export function sharedMemory<Views extends Uint8Array[]>(
  native: Binding,
  ...lengths: { [Index in keyof Views]: number }
): Views {
  const offsets = lengths.map(() => 0)
  let bytes = 0
  for (const [index, length] of lengths.entries()) {
    offsets[index] = bytes
    // Aligned to two cache lines, so that words and doubles are aligned too.
    bytes += Math.ceil(length / 128) * 128
  }
  const buffer = native.memoryMake(bytes)
  return lengths.map((length, index) => new Uint8Array(buffer, offsets[index], length)) as Views
}

/** @throws {NativeError} `NATIVE_DETACHED` when the program has detached `memory`. */
export function checkAttached(memory: Uint8Array): void {
  if (memory.length === 0) throw new NativeError('NATIVE_DETACHED', {})
}
