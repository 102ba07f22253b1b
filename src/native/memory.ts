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

/** A group of layout.ts that has indexes of doubles, and how many there are. */
type Indexes = { readonly numbers: number }
type NumbersBy<Group> = Readonly<Record<Exclude<keyof Group, 'numbers'>, number>>

/** Numbers by the names of a group, as the doubles that the core reads. */
export function doublesOf<Group extends Indexes>(group: Group, values: NumbersBy<Group>): Uint8Array {
  const doubles = new Float64Array(group.numbers)
  for (const name in group) if (name !== 'numbers') doubles[group[name] as number] = values[name as never]
  return new Uint8Array(doubles.buffer)
}

/** Doubles that the core has written, by the names of a group. */
export function namedBy<Group extends Indexes>(group: Group, doubles: Float64Array): NumbersBy<Group> {
  const indexes = Object.entries(group as Readonly<Record<string, number>>)
  const named = indexes.filter(([name]) => name !== 'numbers').map(([name, at]) => [name, doubles[at]])
  return Object.fromEntries(named) as never
}

/** @throws {NativeError} `NATIVE_DETACHED` when the program has detached `memory`. */
export function checkAttached(memory: Uint8Array): void {
  if (memory.length === 0) throw new NativeError('NATIVE_DETACHED', {})
}
