/**
 * Memory that JavaScript and the core share: the core owns it, JavaScript sees it as ArrayBuffers.
 *
 * A program that replaces methods of Uint8Array gets hold of these buffers. It can write nonsense into them,
 * but not make the core use memory that is gone: that lives as long as the core refers to it. Node lets
 * nobody post or clone such a buffer away; byte streams and `transfer` can detach it, and whoever is about to
 * use it then fails with `NATIVE_DETACHED`.
 */
import type { Binding } from './binding.ts'
import { NativeError } from './errors.ts'

/** Zeroes, one stretch of memory for each length: detaching one detaches all of them. */
export function sharedMemory<Views extends Uint8Array[]>(
  native: Binding,
  ...lengths: { [Index in keyof Views]: number }
): Views {
  const offsets = lengths.map(() => 0)
  let bytes = 0
  for (const [index, length] of lengths.entries()) {
    offsets[index] = bytes
    // Words and doubles may lie anywhere in a stretch that begins at a cache line.
    bytes += Math.ceil(length / 128) * 128
  }
  const buffer = native.memoryMake(bytes)
  return lengths.map((length, index) => new Uint8Array(buffer, offsets[index], length)) as Views
}

/** @throws {NativeError} `NATIVE_DETACHED` when the program has detached `memory`. */
export function checkAttached(memory: Uint8Array): void {
  if (memory.length === 0) throw new NativeError('NATIVE_DETACHED', {})
}
