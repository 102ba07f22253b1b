/**
 * Plain objects and arrays by plain loops: keys as strings, no shape looked up, no code generated.
 *
 * A thread writes its first values so (frame.ts counts them) unless json.ts carries them: code that has to
 * be compiled, shapes and generated writers pay after some hundred values, and most programs that start end
 * before. Everything that is neither plain nor an array goes to the writer. One loop with few calls, because
 * the engine interprets it at first, where a call costs more than a value, and compiles what has run often.
 */
import {
  CHUNK_CHARS,
  TAG_ARRAY32,
  TAG_ARRAY8,
  TAG_HOLE,
  TAG_OBJECT_PAIRS,
  TAG_STRING,
  TREE_DEPTH_MAX,
} from '../format.ts'
import type { Position, Sink } from '../sink.ts'
import { DICTIONARY_MIN, nextPresent, presentIndices, valuesOf } from './write-arrays.ts'

/** Leaves of one frame after which shapes pay within that frame. */
const FRAME_LEAVES_MAX = 1024
/** Characters up to which a string has a tag of its own. */
const SHORT_MAX = 63
/** Fields and elements after which the length of the chunk is looked at. A power of two. */
const CHUNK_LOOK = 32
/** Characters of a chunk up to which that many keys and values have room, if they are short. */
const CHUNK_ROOM = CHUNK_CHARS - CHUNK_LOOK * SHORT_MAX * 2

/** The members of the writer that the loops use. */
export interface PlainSink extends Sink {
  text: string
  /** The next string begins a chunk. */
  closeChunk(): void
  depth: number
  leafCount: number
  /** False from the first object on that is written by its shape. */
  isPlain: boolean
  /** Leaves have been written with their keys, others may be written by their shapes. */
  hasKeyedLeaf: boolean
  object(object: object, at: Position): Position
  number(value: number, at: Position): Position
  deep(): void
  leaf(object: object, from: Position, to: Position): void
}

const plainPrototype = Object.prototype
const arrayPrototype = Array.prototype
const { getPrototypeOf, hasOwn, keys: keysOf } = Object
const { isArray } = Array

/** An object of any kind, in a frame without a graph. */
export function writePlain(sink: PlainSink, object: object, from: Position): Position {
  const prototype: unknown = getPrototypeOf(object)
  const isFields = prototype === plainPrototype
  const isElements = !isFields && prototype === arrayPrototype && isArray(object)
  if (!sink.isPlain || !(isFields || isElements)) return sink.object(object, from)
  if (++sink.depth > TREE_DEPTH_MAX) sink.deep()
  const leaves = sink.leafCount
  if (leaves > FRAME_LEAVES_MAX && sink.isPlain) {
    sink.isPlain = false
    sink.hasKeyedLeaf = true
  }
  const bytes = sink.bytes
  const values = object as Record<string | number, unknown>
  const keys = isFields ? keysOf(object) : undefined
  const count = keys === undefined ? (object as unknown[]).length : keys.length
  let at = from + 2
  // Where the first element is a number, the writer looks at all elements first.
  if (keys === undefined && count > 3 && typeof values[0] === 'number') return numbers(sink, object, from)
  if (keys === undefined && count < 256) {
    bytes[from] = TAG_ARRAY8
    bytes[from + 1] = count
  } else {
    bytes[from] = keys === undefined ? TAG_ARRAY32 : TAG_OBJECT_PAIRS
    at = sink.uint32(count, from + 1)
  }
  const listed = keys !== undefined && count >= DICTIONARY_MIN ? valuesOf(object, keys) : undefined
  let present: string[] | undefined
  for (let index = 0; index < count; index++) {
    if ((index & (CHUNK_LOOK - 1)) === 0 && sink.text.length > CHUNK_ROOM) sink.closeChunk()
    let value: unknown
    if (keys === undefined) value = values[index]
    else {
      const key = keys[index]
      if (key.length <= SHORT_MAX) {
        bytes[at++] = TAG_STRING + key.length
        sink.text += key
      } else at = sink.string(key, at)
      value = listed === undefined ? values[key] : listed[index]
    }
    if (typeof value === 'string') {
      if (value.length <= SHORT_MAX) {
        bytes[at++] = TAG_STRING + value.length
        sink.text += value
      } else at = sink.string(value, at)
    } else if (typeof value === 'number') at = sink.number(value, at)
    else if (typeof value === 'object' && value !== null) at = writePlain(sink, value, at)
    else if (value !== undefined || keys !== undefined || hasOwn(object, index)) at = sink.value(value, at)
    else {
      present ??= presentIndices(object as unknown[])
      const next = nextPresent(present, index, count)
      bytes[at] = TAG_HOLE
      at = sink.uint32(next - index, at + 1)
      index = next - 1
    }
  }
  sink.depth--
  if (leaves === sink.leafCount) sink.leaf(object, from, at)
  return at
}

function numbers(sink: PlainSink, object: object, from: Position): Position {
  const leaves = sink.leafCount
  const at = sink.array(object as unknown[], from)
  sink.depth--
  if (leaves === sink.leafCount) sink.leaf(object, from, at)
  return at
}
