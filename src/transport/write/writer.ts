/**
 * Values into bytes: the common kinds. write-special.ts writes the rare ones, frame.ts whole frames.
 *
 * There is one writer per thread and depth of nested calls; all of its state is in the object (WriterState).
 * Writing past the end of the memory is ignored, and the frame is then written again into larger memory. Over
 * 400 lines: one class, whose private methods the engine inlines only within it.
 */
import { messageOf } from '../../base/index.ts'
import {
  CHUNK_CHARS,
  TAG_ARRAY32,
  TAG_ARRAY8,
  TAG_ARRAY_FLOAT64,
  TAG_CAPTURING,
  TAG_CLASS,
  TAG_CLASS_NAMED,
  TAG_FALSE,
  TAG_FLOAT64,
  TAG_FUNCTION,
  TAG_HOLE,
  TAG_INT16,
  TAG_INT32,
  TAG_JSON,
  TAG_SERIALIZED,
  TAG_NULL,
  TAG_OBJECT16,
  TAG_OBJECT32,
  TAG_OBJECT_AGAIN,
  TAG_OBJECT_KEYS,
  TAG_OBJECT_NULL,
  TAG_OBJECT_PAIRS,
  TAG_STRING,
  TAG_STRING16,
  TAG_STRING32,
  TAG_TRUE,
  TAG_UNDEFINED,
} from '../format.ts'
import { classWriter } from '../classes/class-writers.ts'
import type { ClassEntry } from '../class-entry.ts'
import { checkState } from '../classes/classes.ts'
import { valueNumber } from '../functions/functions.ts'
import { capturesOf } from '../functions/lifted.ts'
import { checkAttached } from '../../native/index.ts'
import type { GeneratedSink } from '../generate.ts'
import { processTables, TABLE_CLASSES } from '../process.ts'
import { jsonText } from './json.ts'
import { serialized } from './serialized.ts'
import { countRefused, isNew, isSerializable, kindOf } from './kinds.ts'
import { writePlain, type PlainSink } from './plain.ts'
import { ShapeTable, WriteShape, type Guess } from '../classes/shapes.ts'
import { Refusal, type Position } from '../sink.ts'
import { isFractions, listed, nextPresent, presentIndices, valuesOf, valuesOfListed } from './write-arrays.ts'
import { A_SYMBOL, isArrayElsewhere, isPlainElsewhere, writeBigInt, writeSpecial } from './write-special.ts'
import { WriterState } from './writer-state.ts'

/** Fields from which objects of a shape without code are read by one call. */
const LISTED_MIN = 8
/** Characters from which a string has no tag of its own. */
const SHORT_CHARS = 64
/** Wrong guesses in a row after which the next objects are looked up at once: a wrong one lists the keys. */
const MISSES_MAX = 4
/** Elements from which an array is looked at for being all numbers. */
const NUMBERS_MIN = 4

const plainPrototype = Object.prototype
const arrayPrototype = Array.prototype
const datePrototype = Date.prototype

/** Writes one frame after another into the same memory, which its caller replaces when it was too small. */
export class Writer extends WriterState implements PlainSink, GeneratedSink {
  #root: Guess | undefined = undefined
  /** Wrong guesses of `#root` in a row, up to {@link MISSES_MAX}. */
  #rootMisses = 0
  /** The values of the object whose shape was just looked up, if they were listed; until it is written. */
  #values: readonly unknown[] | undefined = undefined
  /** The frames are read more than once: each object has a shape. */
  readonly isKept: boolean
  readonly #shapes: ShapeTable

  constructor(bytes: Uint8Array, shapes: ShapeTable, isKept = false) {
    super(bytes)
    this.isKept = isKept
    this.#shapes = shapes
  }

  /** The value of a frame of process mode while kinds are counted. @throws {Refusal} as `value`. */
  valueOfKind(value: unknown, at: Position): Position {
    if (typeof value !== 'object' || value === null) return this.value(value, at)
    const kind = kindOf(value)
    this.kind = kind.number
    if (!isNew(kind)) {
      this.isPlain = false
      return this.value(value, at)
    }
    const json = jsonText(value, kind)
    if (json === undefined)
      return isSerializable(kind.number) ? this.#serialized(value, at) : this.value(value, at)
    this.firstLeafCount = json.leafCount
    this.bytes[at] = TAG_JSON
    return this.string(json.text, at + 1)
  }

  #serialized(value: object, at: Position): Position {
    const written = serialized(value)
    if (written === undefined) {
      countRefused(this.kind)
      return this.value(value, at)
    }
    this.firstLeafCount = written.objectCount
    this.bytes[at] = TAG_SERIALIZED
    const from = this.uint32(written.bytes.length, at + 1)
    const end = from + written.bytes.length
    if (end <= this.bytes.length) this.bytes.set(written.bytes, from)
    return end
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
        if (value !== null) return this.isPlain ? writePlain(this, value, at) : this.object(value, at)
        bytes[at] = TAG_NULL
        return at + 1
      case 'boolean':
        bytes[at] = value ? TAG_TRUE : TAG_FALSE
        return at + 1
      case 'undefined':
        bytes[at] = TAG_UNDEFINED
        return at + 1
      case 'bigint':
        return writeBigInt(this, value, at)
      case 'function':
        return this.#function(value, at)
      default:
        throw new Refusal(value, 'refused', A_SYMBOL)
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
    if (this.text.length + length > CHUNK_CHARS) this.closeChunk()
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

  closeChunk(): void {
    if (this.text.length === 0) return
    this.chunks[this.chunkCount++] = this.text
    this.text = ''
  }

  object(object: object, at: Position): Position {
    const guess = this.#root
    const misses = this.#rootMisses
    const isTried = guess !== undefined && guess.write !== undefined && misses < MISSES_MAX
    if (isTried && this.graph === undefined && isRecord(object)) {
      const end = guess.write!(this, object, at)
      if (end >= 0) {
        if (misses > 0) this.#rootMisses = 0
        return end
      }
      this.#rootMisses = misses + 1
    }
    const prototype = Object.getPrototypeOf(object) as object | null
    if (prototype !== plainPrototype) {
      // The code of a class is reached by guesses alone.
      if (misses > 0 && guess?.prototype === prototype) this.#rootMisses = misses - 1
      return this.#other(object, prototype, at)
    }
    const shape = this.#shapeLike(object, guess)
    if (shape === guess && misses > 0) this.#rootMisses = misses - 1
    return this.#plain(object, at, (this.#root = shape))
  }

  /** An object that is not plain. */
  #other(object: object, prototype: object | null, at: Position): Position {
    let position = at
    if (this.graph !== undefined) {
      position = this.met(this.graph, object, at)
      if (position < 0) return ~position
    }
    const mark = this.enter()
    const from = position
    if (
      (prototype === arrayPrototype && Array.isArray(object)) ||
      isArrayElsewhere(object, prototype as object)
    )
      position = this.array(object as unknown[], position)
    else if (prototype === null) position = this.#pairs(TAG_OBJECT_NULL, object, position)
    else if (isPlainElsewhere(object, prototype)) position = this.#pairs(TAG_OBJECT_PAIRS, object, position)
    else {
      position = writeSpecial(this, object, prototype, position)
      // A rare kind is recorded as a leaf even if it contains objects: its content may be made anew at each
      // read, so it does not identify the object. Of a Date it does.
      this.leave(this.leafCount, object, prototype === datePrototype ? from : position, position)
      if (this.depth === 0 && this.lastClass !== undefined) this.#root = this.lastClass
      return position
    }
    this.leave(mark, object, from, position)
    return position
  }

  /** A plain object of this shape, unless it has code that finds other keys; without one, too many keys. */
  #plain(object: object, at: Position, expected: WriteShape | undefined): Position {
    let shape = expected
    const values = this.#values
    if (values !== undefined) this.#values = undefined
    if (shape !== undefined && shape.write !== undefined && this.graph === undefined) {
      let end = shape.write(this, object, at)
      if (end >= 0) return end
      shape = this.#shapeOf(object)
      end = shape?.write?.(this, object, at) ?? -1
      if (end >= 0) return end
    }
    let position = at
    if (this.graph !== undefined) {
      position = this.met(this.graph, object, at)
      if (position < 0) return ~position
    }
    const mark = this.enter()
    const from = shape === undefined ? position : this.shapeTag(shape, position)
    const to =
      shape === undefined
        ? this.#pairs(TAG_OBJECT_PAIRS, object, from)
        : this.#shaped(shape, object, from, values)
    if (shape === undefined && mark === this.leafCount) this.hasKeyedLeaf = true
    this.leave(mark, object, from, to)
    return to
  }

  fields(object: object, at: Position): Position {
    const shape = this.#shapeOf(object)
    // A `for-in` finds an object's own keys first, so an equal count means that it found no others.
    if (shape === undefined || Object.keys(object).length !== shape.keys.length)
      return this.#pairs(TAG_OBJECT_PAIRS, object, at)
    return this.#shaped(shape, object, this.shapeTag(shape, at))
  }

  savedFields(object: object, at: Position): Position {
    this.enter()
    const end = this.fields(object, at)
    this.depth--
    return end
  }

  #shapeLike(object: object, guess: Guess | undefined): WriteShape | undefined {
    if (guess instanceof WriteShape && guess.write === undefined && !this.isPolluted) {
      if (guess.isLarge && this.graph === undefined) return this.#largeLike(object, guess)
      if (guess.fits(object)) return this.#valued(object, guess)
    }
    const shape = this.#shapeOf(object, this.graph !== undefined)
    return shape === undefined ? undefined : this.#valued(object, shape)
  }

  /** The keys of a large object are listed once: a list of a table's takes as long as writing it. */
  #largeLike(object: object, guess: WriteShape): WriteShape | undefined {
    const list = listed(object)
    const shape = guess.has(list.keys) ? guess : this.#shapes.findListed(list.keys, this.isKept)
    if (shape !== undefined) this.#values = valuesOfListed(object, list)
    return shape
  }

  #valued(object: object, shape: WriteShape): WriteShape {
    if (shape.keys.length >= LISTED_MIN && shape.write === undefined && this.graph === undefined)
      this.#values = valuesOf(object, shape.keys)
    return shape
  }

  #shapeOf(object: object, isExact = true): WriteShape | undefined {
    return this.isPolluted ? undefined : this.#shapes.find(object, this.isKept, isExact)
  }

  /** The fields of an object of this shape, behind its tag. */
  #shaped(shape: WriteShape, object: object, at: Position, values?: readonly unknown[]): Position {
    if (values !== undefined) return this.#fieldsListed(shape, values, at)
    let position = at
    const keys = shape.keys
    const fields = object as Record<string, unknown>
    for (let index = 0; index < keys.length; index++) {
      position = this.field(fields[keys[index]], shape, index, position)
    }
    return position
  }

  /** Writes as the code for a shape does: the text so far is a variable. */
  #fieldsListed(shape: WriteShape, values: readonly unknown[], at: Position): Position {
    const bytes = this.bytes
    let position = at
    let text = this.text
    for (let index = 0; index < values.length; index++) {
      const value = values[index]
      if (
        typeof value === 'string' &&
        value.length < SHORT_CHARS &&
        text.length < CHUNK_CHARS - SHORT_CHARS
      ) {
        bytes[position++] = TAG_STRING + value.length
        text += value
      } else if (typeof value === 'number') position = this.number(value, position)
      else {
        this.text = text
        position = this.field(value, shape, index, position)
        text = this.text
      }
    }
    this.text = text
    return position
  }

  field(value: unknown, shape: WriteShape, index: number, at: Position): Position {
    if (typeof value !== 'object' || value === null) return this.value(value, at)
    const guess = shape.inner[index]
    if (guess !== undefined && guess.write !== undefined && this.graph === undefined && isRecord(value)) {
      const end = guess.write(this, value, at)
      if (end >= 0) return end
    }
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype === arrayPrototype || prototype === datePrototype) return this.#other(value, prototype, at)
    if (prototype === plainPrototype) {
      return this.#plain(value, at, (shape.inner[index] = this.#shapeLike(value, guess)))
    }
    this.lastClass = undefined
    const end = this.#other(value, prototype, at)
    shape.inner[index] = this.lastClass
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
    checkAttached(shape.block)
    shape.frame = this.frame
    shape.frameIndex = this.blockCount++
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
    const shape = this.#admits(entry) ? this.#shapeOf(object) : undefined
    const position = this.classTag(entry, at)
    if (shape === undefined) {
      checkState(object)
      return this.#pairs(TAG_OBJECT_PAIRS, object, position)
    }
    const end = this.#shaped(shape, object, this.shapeTag(shape, position))
    // After its fields, which may be objects of classes as well.
    this.lastClass = classWriter(entry, shape, object)
    return end
  }

  #admits(owner: ClassEntry): boolean {
    if (owner.frame === this.frame) return true
    // With an enumerable property above it, what a `for-in` finds in an object is not all its own.
    for (const _ in owner.prototype) return false
    owner.frame = this.frame
    return true
  }

  #pairs(tag: number, object: object, at: Position): Position {
    const keys = Object.keys(object)
    const values = valuesOf(object, keys)
    this.bytes[at] = tag
    let position = this.uint32(keys.length, at + 1)
    for (let index = 0; index < keys.length; index++) {
      position = this.string(keys[index], position)
      position = this.value(values[index], position)
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
    let misses = 0
    let present: string[] | undefined
    for (let index = 0; index < length; index++) {
      const value = array[index]
      if (typeof value === 'number') position = this.number(value, position)
      else if (typeof value === 'object' && value !== null) {
        const isTried = guess !== undefined && guess.write !== undefined && misses < MISSES_MAX
        if (isTried && this.graph === undefined && isRecord(value)) {
          const end = guess!.write!(this, value, position)
          if (end >= 0) {
            position = end
            misses = 0
            continue
          }
          misses++
        }
        const prototype = Object.getPrototypeOf(value) as object | null
        if (prototype === arrayPrototype && this.graph === undefined && Array.isArray(value)) {
          position = this.#innerArray(value, position)
        } else if (prototype === plainPrototype) {
          const shape: WriteShape | undefined = this.#shapeLike(value, guess)
          if (shape === guess && misses > 0) misses--
          position = this.#plain(value, position, (guess = shape))
        } else {
          if (guess?.prototype === prototype && misses > 0) misses--
          this.lastClass = undefined
          position = this.#other(value, prototype, position)
          guess = this.lastClass
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

  #innerArray(array: readonly unknown[], at: Position): Position {
    const mark = this.enter()
    const to = this.array(array, at)
    this.leave(mark, array, at, to)
    return to
  }

  #numbers(array: readonly unknown[], at: Position): Position {
    this.bytes[at] = TAG_ARRAY_FLOAT64
    let position = this.uint32(array.length, at + 1)
    for (let index = 0; index < array.length; index++)
      position = this.float64(array[index] as number, position)
    return position
  }

  #function(value: Function, at: Position): Position {
    if (!this.isProcess) {
      throw new Refusal(
        value,
        'function',
        'a self-contained frame contains no functions; encode it in process mode',
      )
    }
    const captures = capturesOf(value)
    if (captures !== undefined) {
      this.bytes[at] = TAG_CAPTURING
      return this.value(captures.values, this.uint32(captures.number, at + 1))
    }
    let number: number
    try {
      number = valueNumber(value)
    } catch (error) {
      throw new Refusal(value, 'function', messageOf(error), error)
    }
    this.bytes[at] = TAG_FUNCTION
    return this.uint32(number, at + 1)
  }
}

/** False for objects with elements: generated code would list all of them as keys. */
function isRecord(object: object): boolean {
  return !Array.isArray(object) && !ArrayBuffer.isView(object)
}
