/**
 * Values into bytes: the common kinds. write-special.ts has the rare ones, frame.ts begins and ends a frame.
 *
 * One writer per thread and depth of nesting; all of its state is in the object. Sharing and cycles cost
 * almost nothing while there are none: the writer assumes a tree and remembers only the *leaves*, the objects
 * in which it met no other object. If any object is met twice, then so is the first leaf below it, or there
 * is a cycle and the nesting has no end. Either makes the writer stop (`Retry`), and frame.ts starts again
 * with every object looked up in a table: once to learn which ones are met again, once to write.
 */
import {
  CHUNK_CHARS,
  DEPTH_MAX,
  Resizables,
  TAG_ARRAY32,
  TAG_ARRAY8,
  TAG_ARRAY_FLOAT64,
  TAG_BIGINT,
  TAG_CLASS,
  TAG_CLASS_NAMED,
  TAG_DEFINE,
  TAG_FALSE,
  TAG_FLOAT64,
  TAG_FUNCTION,
  TAG_HOLE,
  TAG_INT16,
  TAG_INT32,
  TAG_NULL,
  TAG_OBJECT16,
  TAG_OBJECT32,
  TAG_OBJECT_AGAIN,
  TAG_OBJECT_KEYS,
  TAG_OBJECT_NULL,
  TAG_OBJECT_PAIRS,
  TAG_REFERENCE,
  TAG_STRING,
  TAG_STRING16,
  TAG_STRING32,
  TAG_TRUE,
  TAG_UNDEFINED,
  TREE_DEPTH_MAX,
} from '../format.ts'
import { classWriter } from '../classes/class-writers.ts'
import type { ClassEntry, ClassWriter } from '../classes/class-entry.ts'
import { checkState } from '../classes/classes.ts'
import { functionNumber } from '../functions/functions.ts'
import type { GeneratedClass, GeneratedSink } from '../classes/generate.ts'
import type { Graph } from './graph.ts'
import { areDistinct, type Leaves } from './leaves.ts'
import { processTables, TABLE_CLASSES } from '../process.ts'
import { ShapeTable, WriteShape, type Guess } from '../classes/shapes.ts'
import { Refusal, type Commitment, type Position, type Sink } from './sink.ts'
import { isFractions, nextPresent, presentIndices } from './write-arrays.ts'
import { isArrayElsewhere, isPlainElsewhere, writeSpecial } from './write-special.ts'

/** Thrown by a writer that assumed a tree and found something else. */
export const RETRY: unique symbol = Symbol('retry')
/** Thrown by a writer that reached {@link DEPTH_MAX}. */
export const TOO_DEEP: unique symbol = Symbol('too deep')

/**
 * Leaves at which they are compared although the frame is not complete, so that no graph unfolds without
 * bound.
 */
const LEAVES_FIRST_CHECK = 1024
/** Elements from which an array is looked at for being all numbers. */
const NUMBERS_MIN = 4

const plainPrototype = Object.prototype
const arrayPrototype = Array.prototype

/** Writes one frame after another; see the head of this file. */
export class Writer implements Sink, GeneratedSink {
  bytes: Uint8Array
  view: DataView
  isProcess = true
  /** Characters of strings since the last finished chunk. */
  text = ''
  readonly chunks: string[] = []
  readonly commitments: Commitment[] = []
  graph: Graph | undefined = undefined
  leafCount = 0
  depth = 0
  frame = 0
  /** Object.prototype has enumerable properties, so what a `for-in` finds may be nobody's own. */
  isPolluted = false
  readonly #leaves: (object | undefined)[] = new Array<object | undefined>(LEAVES_FIRST_CHECK).fill(undefined)
  readonly #leafFrom: number[] = []
  readonly #leafTo: number[] = []
  readonly #allLeaves: Leaves = { objects: this.#leaves, from: this.#leafFrom, to: this.#leafTo }
  #leavesCheckAt = LEAVES_FIRST_CHECK
  /** Leaves of earlier attempts at the frame, which still lie there. */
  #leavesHeld = 0
  #blockCount = 0
  #root: Guess | undefined = undefined
  /** The writer of the last object of a registered class: the next one in its place is likely the same. */
  #lastClass: ClassWriter | undefined = undefined
  #resizables: Resizables | undefined = undefined
  readonly #saved = new Map<object, unknown>()
  readonly #shapes: ShapeTable

  constructor(bytes: Uint8Array, shapes: ShapeTable) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#shapes = shapes
  }

  /** Write into other memory from now on. */
  into(bytes: Uint8Array): void {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Forget the last attempt at a frame; `frame` is a number no other attempt in this thread has. */
  begin(frame: number): void {
    this.frame = frame
    this.#blockCount = 0
    this.depth = 0
    if (this.leafCount > this.#leavesHeld) this.#leavesHeld = this.leafCount
    this.leafCount = 0
    this.#leavesCheckAt = LEAVES_FIRST_CHECK
    this.text = ''
    if (this.chunks.length > 0) this.chunks.length = 0
    if (this.commitments.length > 0) this.commitments.length = 0
    this.#lastClass = undefined
    this.#resizables = undefined
    this.isPolluted = false
    for (const _ in plainPrototype) this.isPolluted = true
  }

  /** Let go of everything a frame held on to. */
  end(): void {
    const leaves = this.#leaves
    const held = Math.max(this.leafCount, this.#leavesHeld)
    if (held > LEAVES_FIRST_CHECK)
      leaves.length = this.#leafFrom.length = this.#leafTo.length = LEAVES_FIRST_CHECK
    for (let index = Math.min(held, LEAVES_FIRST_CHECK) - 1; index >= 0; index--) leaves[index] = undefined
    this.leafCount = this.#leavesHeld = 0
    this.graph = undefined
    this.text = ''
    if (this.chunks.length > 0) this.chunks.length = 0
    if (this.commitments.length > 0) this.commitments.length = 0
    if (this.#saved.size > 0) this.#saved.clear()
  }

  /** True when no leaf was met twice: what was written stands. Only asked without a graph. */
  isTree(): boolean {
    const count = this.leafCount
    return count < 2 || areDistinct(this.#allLeaves, this.bytes, count)
  }

  /** A value of any kind. @throws {Refusal} when it cannot travel. */
  value(value: unknown, at: Position): Position {
    const bytes = this.bytes
    switch (typeof value) {
      case 'number':
        return this.number(value, at)
      case 'string':
        return this.string(value, at)
      case 'object':
        if (value !== null) return this.object(value, at)
        bytes[at] = TAG_NULL
        return at + 1
      case 'boolean':
        bytes[at] = value ? TAG_TRUE : TAG_FALSE
        return at + 1
      case 'undefined':
        bytes[at] = TAG_UNDEFINED
        return at + 1
      case 'bigint':
        return this.#bigint(value, at)
      case 'function':
        return this.#function(value, at)
      default:
        throw new Refusal(value, 'refused', 'a symbol has an identity that no other thread has')
    }
  }

  number(value: number, at: Position): Position {
    const bytes = this.bytes
    const integer = value | 0
    if (integer === value && (integer !== 0 || 1 / value > 0)) {
      if (integer >= 0 && integer < 128) {
        bytes[at] = integer
        return at + 1
      }
      if (integer >= -32768 && integer < 32768) {
        bytes[at] = TAG_INT16
        bytes[at + 1] = integer
        bytes[at + 2] = integer >> 8
        return at + 3
      }
      bytes[at] = TAG_INT32
      return this.uint32(integer, at + 1)
    }
    bytes[at] = TAG_FLOAT64
    return this.float64(value, at + 1)
  }

  string(text: string, at: Position): Position {
    const bytes = this.bytes
    const length = text.length
    if (this.text.length + length > CHUNK_CHARS) this.#newChunk()
    this.text += text
    if (length < 64) {
      bytes[at] = TAG_STRING + length
      return at + 1
    }
    if (length < 65_536) {
      bytes[at] = TAG_STRING16
      bytes[at + 1] = length
      bytes[at + 2] = length >> 8
      return at + 3
    }
    bytes[at] = TAG_STRING32
    return this.uint32(length, at + 1)
  }

  #newChunk(): void {
    if (this.text.length === 0) return
    this.chunks.push(this.text)
    this.text = ''
  }

  uint32(number: number, at: Position): Position {
    const bytes = this.bytes
    bytes[at] = number
    bytes[at + 1] = number >> 8
    bytes[at + 2] = number >> 16
    bytes[at + 3] = number >> 24
    return at + 4
  }

  float64(number: number, at: Position): Position {
    if (at + 8 <= this.bytes.length) this.view.setFloat64(at, number, true)
    return at + 8
  }

  raw(source: Uint8Array, at: Position): Position {
    if (at + source.length <= this.bytes.length) this.bytes.set(source, at)
    return at + source.length
  }

  /** An object of any kind. */
  object(object: object, at: Position): Position {
    const guess = this.#root
    if (guess !== undefined && guess.write !== undefined && this.graph === undefined && isRecord(object)) {
      const end = guess.write(this, object, at)
      if (end >= 0) return end
    }
    const prototype: unknown = Object.getPrototypeOf(object)
    if (prototype === plainPrototype)
      return this.#plain(object, at, (this.#root = this.#shapeLike(object, guess)))
    let position = at
    if (this.graph !== undefined) {
      position = this.#met(this.graph, object, at)
      if (position < 0) return ~position
    }
    const mark = this.#enter()
    const from = position
    if (
      (prototype === arrayPrototype && Array.isArray(object)) ||
      isArrayElsewhere(object, prototype as object)
    )
      position = this.array(object as unknown[], position)
    else if (prototype === null) position = this.#pairs(TAG_OBJECT_NULL, object, position)
    else if (isPlainElsewhere(object, prototype as object))
      position = this.#pairs(TAG_OBJECT_PAIRS, object, position)
    else {
      position = writeSpecial(this, object, prototype as object, position)
      // A rare kind is remembered even if objects lie below it: its content may be made anew at every look,
      // and is written in more ways than one, so it says nothing about which object it is.
      this.#leave(this.leafCount, object, position, position)
      if (this.depth === 0 && this.#lastClass !== undefined) this.#root = this.#lastClass
      return position
    }
    this.#leave(mark, object, from, position)
    return position
  }

  /** A plain object of this shape; without one, too many keys. */
  #plain(object: object, at: Position, shape: WriteShape | undefined): Position {
    if (shape !== undefined && shape.write !== undefined && this.graph === undefined) {
      const end = shape.write(this, object, at)
      if (end >= 0) return end
    }
    let position = at
    if (this.graph !== undefined) {
      position = this.#met(this.graph, object, at)
      if (position < 0) return ~position
    }
    const mark = this.#enter()
    const from = shape === undefined ? position : this.shapeTag(shape, position)
    const to =
      shape === undefined ? this.#pairs(TAG_OBJECT_PAIRS, object, from) : this.#shaped(shape, object, from)
    this.#leave(mark, object, from, to)
    return to
  }

  fields(object: object, at: Position): Position {
    const shape = this.#shapeOf(object)
    // What a `for-in` finds begins with the object's own: as many are all there are.
    if (shape === undefined || Object.keys(object).length !== shape.keys.length)
      return this.#pairs(TAG_OBJECT_PAIRS, object, at)
    return this.#shaped(shape, object, this.shapeTag(shape, at))
  }

  savedFields(object: object, at: Position): Position {
    this.#enter()
    const end = this.fields(object, at)
    this.depth--
    return end
  }

  #shapeLike(object: object, guess: Guess | undefined): WriteShape | undefined {
    return guess instanceof WriteShape && guess.write === undefined && !this.isPolluted && guess.fits(object)
      ? guess
      : this.#shapeOf(object)
  }

  /** The shape found by its keys. */
  #shapeOf(object: object): WriteShape | undefined {
    return this.isPolluted ? undefined : this.#shapes.find(object)
  }

  /** The fields of an object of this shape, behind its tag. */
  #shaped(shape: WriteShape, object: object, at: Position): Position {
    let position = at
    const keys = shape.keys
    const fields = object as Record<string, unknown>
    for (let index = 0; index < keys.length; index++) {
      position = this.field(fields[keys[index]], shape, index, position)
    }
    return position
  }

  field(value: unknown, shape: WriteShape, index: number, at: Position): Position {
    if (typeof value !== 'object' || value === null) return this.value(value, at)
    const guess = shape.inner[index]
    if (guess !== undefined && guess.write !== undefined && this.graph === undefined && isRecord(value)) {
      const end = guess.write(this, value, at)
      if (end >= 0) return end
    }
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === arrayPrototype) return this.object(value, at)
    if (prototype === plainPrototype) {
      return this.#plain(value, at, (shape.inner[index] = this.#shapeLike(value, guess)))
    }
    this.#lastClass = undefined
    const end = this.object(value, at)
    shape.inner[index] = this.#lastClass
    return end
  }

  shapeTag(shape: WriteShape, at: Position): Position {
    const bytes = this.bytes
    if (shape.write === undefined) shape.used()
    const number = this.isProcess ? shape.number : 0
    if (number !== 0) {
      if (number < 65_536) {
        bytes[at] = TAG_OBJECT16
        bytes[at + 1] = number
        bytes[at + 2] = number >> 8
        return at + 3
      }
      bytes[at] = TAG_OBJECT32
      return this.uint32(number, at + 1)
    }
    if (shape.frame === this.frame && shape.frameIndex < 65_536) {
      bytes[at] = TAG_OBJECT_AGAIN
      bytes[at + 1] = shape.frameIndex
      bytes[at + 2] = shape.frameIndex >> 8
      return at + 3
    }
    shape.frame = this.frame
    shape.frameIndex = this.#blockCount++
    bytes[at] = TAG_OBJECT_KEYS
    return this.raw(shape.block, at + 1)
  }

  classTag(entry: ClassEntry, at: Position): Position {
    const bytes = this.bytes
    if (this.isProcess && (entry.number ||= processTables().intern(TABLE_CLASSES, entry.cid)) !== 0) {
      bytes[at] = TAG_CLASS
      return this.uint32(entry.version, this.uint32(entry.number, at + 1))
    }
    bytes[at] = TAG_CLASS_NAMED
    return this.uint32(entry.version, this.string(entry.cid, at + 1))
  }

  instance(object: object, entry: ClassEntry, at: Position): Position {
    const shape = this.admits(entry) ? this.#shapeOf(object) : undefined
    const position = this.classTag(entry, at)
    if (shape === undefined) {
      checkState(object)
      return this.#pairs(TAG_OBJECT_PAIRS, object, position)
    }
    const end = this.#shaped(shape, object, this.shapeTag(shape, position))
    // After its fields, which may be objects of classes as well.
    this.#lastClass = classWriter(entry, shape, object)
    return end
  }

  admits(owner: GeneratedClass): boolean {
    if (owner.frame === this.frame) return true
    // With an enumerable property above it, what a `for-in` finds in an object is not all its own.
    for (const _ in owner.prototype) return false
    owner.frame = this.frame
    return true
  }

  #pairs(tag: number, object: object, at: Position): Position {
    const keys = Object.keys(object)
    const fields = object as Record<string, unknown>
    this.bytes[at] = tag
    let position = this.uint32(keys.length, at + 1)
    for (const key of keys) {
      position = this.string(key, position)
      position = this.value(fields[key], position)
    }
    return position
  }

  /** An array of this realm or another, or of a class that extends Array. */
  array(array: readonly unknown[], at: Position): Position {
    const length = array.length
    if (length >= NUMBERS_MIN && typeof array[0] === 'number' && isFractions(array))
      return this.#numbers(array, at)
    const bytes = this.bytes
    let position: Position
    if (length < 256) {
      bytes[at] = TAG_ARRAY8
      bytes[at + 1] = length
      position = at + 2
    } else {
      bytes[at] = TAG_ARRAY32
      position = this.uint32(length, at + 1)
    }
    let guess: Guess | undefined
    let present: string[] | undefined
    for (let index = 0; index < length; index++) {
      const value = array[index]
      if (typeof value === 'number') position = this.number(value, position)
      else if (typeof value === 'object' && value !== null) {
        if (guess !== undefined && guess.write !== undefined && this.graph === undefined && isRecord(value)) {
          const end = guess.write(this, value, position)
          if (end >= 0) {
            position = end
            continue
          }
        }
        const prototype: unknown = Object.getPrototypeOf(value)
        if (prototype === arrayPrototype && this.graph === undefined && Array.isArray(value)) {
          position = this.#innerArray(value, position)
        } else if (prototype === plainPrototype) {
          const shape = this.#shapeLike(value, guess)
          position = this.#plain(value, position, (guess = shape))
        } else {
          this.#lastClass = undefined
          position = this.object(value, position)
          guess = this.#lastClass
        }
      } else if (value === undefined && !Object.hasOwn(array, index)) {
        present ??= presentIndices(array)
        const next = nextPresent(present, index, length)
        bytes[position] = TAG_HOLE
        position = this.uint32(next - index, position + 1)
        index = next - 1
      } else position = this.value(value, position)
    }
    return position
  }

  /** An array in an array, in a frame without a graph. */
  #innerArray(array: readonly unknown[], at: Position): Position {
    const mark = this.#enter()
    const to = this.array(array, at)
    this.#leave(mark, array, at, to)
    return to
  }

  #numbers(array: readonly unknown[], at: Position): Position {
    this.bytes[at] = TAG_ARRAY_FLOAT64
    let position = this.uint32(array.length, at + 1)
    for (let index = 0; index < array.length; index++)
      position = this.float64(array[index] as number, position)
    return position
  }

  #bigint(value: bigint, at: Position): Position {
    const digits = (value < 0n ? -value : value).toString(16)
    const magnitude = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex')
    this.bytes[at] = TAG_BIGINT
    this.bytes[at + 1] = value < 0n ? 1 : 0
    const position = this.uint32(magnitude.length, at + 2)
    return this.raw(magnitude, position)
  }

  #function(value: Function, at: Position): Position {
    if (!this.isProcess) {
      throw new Refusal(value, 'function', 'a frame that leaves the process carries no functions')
    }
    let number: number
    try {
      number = functionNumber(value)
    } catch (error) {
      throw new Refusal(value, 'function', error instanceof Error ? error.message : String(error), error)
    }
    this.bytes[at] = TAG_FUNCTION
    return this.uint32(number, at + 1)
  }

  saved(object: object, make: () => unknown): unknown {
    if (!this.#saved.has(object)) this.#saved.set(object, make())
    return this.#saved.get(object)
  }

  /** What a save hook returned for `object` in this frame. */
  savedOf(object: object): unknown {
    return this.#saved.get(object)
  }

  /** See {@link Sink}. @throws `RETRY` without a graph, a {@link Refusal} with one. */
  resizable(buffer: ArrayBuffer, length: number, lengthMax: number): void {
    const why = (this.#resizables ??= new Resizables()).tooMuch(length, lengthMax)
    if (why === undefined) return
    // Taken for a tree, a buffer that is met twice counts twice.
    if (this.graph === undefined) throw RETRY
    throw new Refusal(buffer, 'refused', why)
  }

  opened(object: object, isOpen: boolean): void {
    if (isOpen) this.graph?.open.add(object)
    else this.graph?.open.delete(object)
  }

  /** Negative: the object is written as a reference, and ~result is where the next value goes. */
  #met(graph: Graph, object: object, at: Position): Position {
    const number = graph.meet(object)
    if (number === -2) return at
    if (number === -1) {
      this.bytes[at] = TAG_DEFINE
      return at + 1
    }
    if (graph.open.has(object)) {
      throw new Refusal(object, 'refused', 'a cycle leads back to an object whose load hook must run first')
    }
    this.bytes[at] = TAG_REFERENCE
    return ~this.uint32(number, at + 1)
  }

  #enter(): number {
    if (++this.depth > TREE_DEPTH_MAX) this.deep()
    return this.leafCount
  }

  /** The object is written; `mark` is the number of leaves when it was begun. */
  #leave(mark: number, object: object, from: Position, to: Position): void {
    this.depth--
    if (mark === this.leafCount && this.graph === undefined) this.leaf(object, from, to)
  }

  /** No other object was met in this one. @throws `RETRY` when the leaf was met before. */
  leaf(object: object, from: Position, to: Position): void {
    const leaf = this.leafCount++
    this.#leaves[leaf] = object
    this.#leafFrom[leaf] = from
    this.#leafTo[leaf] = to
    if (leaf + 1 !== this.#leavesCheckAt) return
    if (!areDistinct(this.#allLeaves, this.bytes, leaf + 1)) throw RETRY
    this.#leavesCheckAt *= 16
  }

  /** Deeper than a tree should be. @throws `RETRY` without a graph, `TOO_DEEP` with one. */
  deep(): void {
    if (this.graph === undefined) throw RETRY
    if (this.depth > DEPTH_MAX) throw TOO_DEEP
  }
}

/** False for what has elements: generated code would list all of them to see that they are no keys. */
function isRecord(object: object): boolean {
  return !Array.isArray(object) && !ArrayBuffer.isView(object)
}
