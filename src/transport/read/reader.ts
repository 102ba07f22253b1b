/**
 * Bytes into values: the common kinds. read-special.ts reads the rare ones, frame-cursor.ts the primitives.
 *
 * There is one reader per thread and depth of nested calls; all of its state is in the object. Every length
 * is compared with the bytes that are left before memory is allocated for it. Over 400 lines: one switch over
 * the kinds, whose private methods the engine inlines only within their class.
 */
import { TransportError } from '../errors.ts'
import {
  DEPTH_MAX,
  Resizables,
  TAG_ARRAY32,
  TAG_ARRAY8,
  TAG_ARRAY_BUFFER,
  TAG_ARRAY_FLOAT64,
  TAG_CLASS,
  TAG_CLASS_NAMED,
  TAG_DEFINE,
  TAG_ERROR,
  TAG_FALSE,
  TAG_FLOAT64,
  TAG_HOLE,
  TAG_INT16,
  TAG_INT32,
  TAG_MAP,
  TAG_NULL,
  TAG_OBJECT16,
  TAG_OBJECT32,
  TAG_OBJECT_AGAIN,
  TAG_OBJECT_KEYS,
  TAG_OBJECT_NULL,
  TAG_OBJECT_PAIRS,
  TAG_REFERENCE,
  TAG_SET,
  TAG_STRING,
  TAG_STRING16,
  TAG_STRING32,
  TAG_TRUE,
  TAG_UNDEFINED,
} from '../format.ts'
import type { GeneratedSource } from '../generate.ts'
import { type ReadShape, type ReadShapeTable, setField } from './read-shapes.ts'
import { readSpecial } from './read-special.ts'
import { FrameCursor, uint32At } from './frame-cursor.ts'
import { fractionsOf } from './fractions.ts'
import { type FrameSource, beyondTrees } from './source.ts'

/** Placeholder of an object that is defined and not made yet. */
const UNMADE = Symbol('unmade')
/** Arrays from this length on are made at once, see `#row`. */
const ROW_MIN = 8
const ZEROS: readonly number[] = Array.from({ length: 255 }, () => 0)
/** Holes of a frame, beyond its bytes, for which arrays may allocate; see `#holes`. */
const HOLES_DENSE_MAX = 1024

/** Keys beyond which the engine would turn an object that grows into a table anyway. */
const FAST_KEYS_MAX = 16

/** A plain object that the engine keeps as a table from the beginning: of new keys it costs half. */
function newDictionary(): object {
  return Object.setPrototypeOf(Object.create(null), Object.prototype) as object
}

export class Reader extends FrameCursor implements FrameSource, GeneratedSource {
  #depth = 0
  /** Holes for which arrays may still allocate. */
  #holesLeft = 0
  #resizables: Resizables | undefined = undefined
  #pending = -1
  readonly #defined: unknown[] = []
  /** Shapes of earlier frames stay in it: an array that is emptied loses its memory. */
  readonly #blocks: ReadShape[] = []
  #blockCount = 0
  readonly #shapes: ReadShapeTable

  constructor(shapes: ReadShapeTable) {
    super()
    this.#shapes = shapes
  }

  /**
   * The value of the frame in `bytes` from `start` to `end`.
   * @param modeAlso The mode of frames that are read besides self-contained ones.
   * @throws {TransportError} when the frame is damaged, or contains what this thread cannot make.
   */
  frame(bytes: Uint8Array, start: number, end: number, modeAlso: number): unknown {
    this.open(bytes, start, end, modeAlso)
    this.#holesLeft = HOLES_DENSE_MAX + this.bodyEnd - this.at
    this.#depth = 0
    this.#pending = -1
    const value = this.value()
    this.checkEnd()
    return value
  }

  /** Drop every reference to the last frame and its value. */
  end(): void {
    this.close()
    this.#resizables = undefined
    if (this.#defined.length > 0) this.#defined.length = 0
    this.#blockCount = 0
  }

  value(): unknown {
    const tag = this.bytes[this.at++]
    if (tag < TAG_STRING) return tag
    if (tag === TAG_FLOAT64) return this.float64()
    if (tag < TAG_INT16) return this.characters(tag - TAG_STRING)
    if (tag === TAG_OBJECT16) return this.#object16()
    if (tag === TAG_ARRAY8 && this.#pending < 0) return this.#array8()
    return this.tagged(tag)
  }

  /** The shortest way to an object whose shape has generated code. */
  #object16(): unknown {
    const at = this.at
    const shape = this.#shapes.byNumber[this.bytes[at] | (this.bytes[at + 1] << 8)]
    if (shape === undefined || shape.read === undefined || !this.isProcess) return this.#object(TAG_OBJECT16)
    this.at = at + 2
    if (++this.#depth > DEPTH_MAX) this.#tooDeep()
    if (shape.keys.length > this.bodyEnd - this.at) this.fail('an object is longer than what is left')
    const object = shape.read(this)
    this.#depth--
    return object
  }

  /** The shortest way to an object with the keys that were read last, if their shape has generated code. */
  #objectKeys(): unknown {
    const { bytes, at } = this
    const end = at + 2 + (bytes[at] | (bytes[at + 1] << 8))
    const shape = end <= this.bodyEnd ? this.#shapes.again(bytes, at + 2, end) : undefined
    if (shape?.read === undefined || this.#pending >= 0) return this.#object(TAG_OBJECT_KEYS)
    this.at = end
    this.#blocks[this.#blockCount++] = shape
    return this.#generated(shape, shape.read)
  }

  /** The shortest way to an object with keys of an earlier one in this frame. */
  #objectAgain(): unknown {
    const { bytes, at } = this
    const shape = this.#earlier(bytes[at] | (bytes[at + 1] << 8))
    if (shape?.read === undefined || this.#pending >= 0) return this.#object(TAG_OBJECT_AGAIN)
    this.at = at + 2
    return this.#generated(shape, shape.read)
  }

  #generated(shape: ReadShape, read: NonNullable<ReadShape['read']>): object {
    if (++this.#depth > DEPTH_MAX) this.#tooDeep()
    if (shape.keys.length > this.bodyEnd - this.at) this.fail('an object is longer than what is left')
    const object = read(this)
    this.#depth--
    return object
  }

  /** The shortest way to a short array. */
  #array8(): unknown[] {
    if (this.at >= this.bodyEnd) this.fail('it ends within a value')
    if (++this.#depth > DEPTH_MAX) this.#tooDeep()
    const length = this.bytes[this.at++]
    const isRow = length >= ROW_MIN && length <= this.bodyEnd - this.at
    const array = length === 2 ? this.#pair() : isRow ? this.#row(length) : this.#rest([], length)
    this.#depth--
    return array
  }

  /**
   * The elements of an array of some length: it is a copy of zeros first, since an array that grows by `push`
   * is copied four times on its way to 100 elements, and one made by its length counts as having holes.
   */
  #row(length: number): unknown[] {
    const array: unknown[] = ZEROS.slice(0, length)
    for (let index = 0; index < length; index++) {
      const { bytes, at } = this
      const tag = bytes[at]
      if (at >= this.bodyEnd) this.fail('an array is longer than what is left')
      if (tag < TAG_STRING) {
        array[index] = tag
        this.at = at + 1
      } else if (tag === TAG_INT32 && at + 4 < this.bodyEnd) {
        array[index] = uint32At(bytes, at + 1) | 0
        this.at = at + 5
      } else if (tag === TAG_HOLE) {
        array.length = index
        return this.#rest(array, length)
      } else array[index] = this.value()
    }
    return array
  }

  #tooDeep(): never {
    throw new TransportError('TRANSPORT_DEPTH', { depthMax: DEPTH_MAX })
  }

  other(tag: number): unknown {
    if (tag === TAG_OBJECT16) return this.#object16()
    if (tag < TAG_INT16) return this.characters(tag - TAG_STRING)
    return this.tagged(tag)
  }

  /** The value whose tag, 0xc0 or above, was just read. */
  tagged(tag: number): unknown {
    switch (tag) {
      case TAG_INT16: {
        const at = this.at
        this.at = at + 2
        return ((this.bytes[at] | (this.bytes[at + 1] << 8)) << 16) >> 16
      }
      case TAG_INT32:
        return this.uint32() | 0
      case TAG_FLOAT64:
        return this.float64()
      case TAG_STRING16: {
        const at = this.at
        this.at = at + 2
        return this.characters(this.bytes[at] | (this.bytes[at + 1] << 8))
      }
      case TAG_STRING32:
        return this.characters(this.uint32())
      case TAG_NULL:
        return null
      case TAG_UNDEFINED:
        return undefined
      case TAG_TRUE:
        return true
      case TAG_FALSE:
        return false
      case TAG_REFERENCE:
        return this.#reference()
      case TAG_OBJECT_KEYS:
        return this.#objectKeys()
      case TAG_OBJECT_AGAIN:
        return this.#objectAgain()
      default:
        return this.#object(tag)
    }
  }

  #object(tag: number): unknown {
    if (this.at > this.bodyEnd) this.fail('it ends within a value')
    if (tag === TAG_DEFINE) return this.#define()
    if (++this.#depth > DEPTH_MAX) this.#tooDeep()
    const value = this.#container(tag)
    this.#depth--
    return value
  }

  #container(tag: number): unknown {
    switch (tag) {
      case TAG_OBJECT16:
      case TAG_OBJECT32:
      case TAG_OBJECT_KEYS:
      case TAG_OBJECT_AGAIN:
        return this.#shaped(this.#shapeFor(tag))
      case TAG_ARRAY8:
        return this.#array(this.bytes[this.at++])
      case TAG_ARRAY32:
        return this.#array(this.uint32())
      case TAG_ARRAY_FLOAT64:
        return this.#numbers()
      case TAG_OBJECT_PAIRS:
        return this.#pairs()
      case TAG_OBJECT_NULL:
        return this.#pairs(Object.create(null) as object)
      default:
        return readSpecial(this, tag)
    }
  }

  #shapeFor(tag: number): ReadShape {
    const shape =
      tag === TAG_OBJECT16 || tag === TAG_OBJECT32
        ? this.#numbered(tag === TAG_OBJECT16 ? this.uint16() : this.uint32())
        : tag === TAG_OBJECT_KEYS
          ? this.#block()
          : this.#earlier(this.uint16())
    if (shape === undefined) return this.fail('an object has keys that nobody defined')
    if (shape.keys.length > this.bodyEnd - this.at) this.fail('an object is longer than what is left')
    return shape
  }

  #numbered(number: number): ReadShape | undefined {
    return this.isProcess ? this.#shapes.numbered(number) : undefined
  }

  #block(): ReadShape | undefined {
    const start = this.at + 2
    const end = start + this.uint16()
    if (end > this.bodyEnd) this.fail('keys are longer than what is left')
    this.at = end
    const shape = this.#shapes.block(this.bytes, start, end)
    if (shape !== undefined) this.#blocks[this.#blockCount++] = shape
    return shape
  }

  #earlier(index: number): ReadShape | undefined {
    return index < this.#blockCount ? this.#blocks[index] : undefined
  }

  #shaped(shape: ReadShape): object {
    if (shape.read !== undefined && this.#pending < 0) return shape.read(this)
    shape.used()
    const keys = shape.keys
    const object = (keys.length > FAST_KEYS_MAX ? newDictionary() : {}) as Record<string, unknown>
    this.claim(object)
    if (shape.isOdd)
      for (let index = 0; index < keys.length; index++) setField(object, keys[index], this.value())
    else for (let index = 0; index < keys.length; index++) object[keys[index]] = this.value()
    return object
  }

  /** The one loop for keys that a frame contains as strings: all short values in place. */
  #pairs(into?: object): object {
    const count = this.count(2)
    const object = into ?? (count > FAST_KEYS_MAX ? newDictionary() : {})
    if (this.#pending >= 0) this.claim(object)
    const bytes = this.bytes
    const fields = object as Record<string, unknown>
    for (let index = 0; index < count; index++) {
      let tag = bytes[this.at]
      let from = this.textAt
      let to = from + tag - TAG_STRING
      let key: string
      if (tag >= TAG_STRING && tag < TAG_INT16 && to <= this.text.length) {
        key = this.text.substring(from, (this.textAt = to))
        this.at++
      } else key = this.string()
      tag = bytes[this.at++]
      from = this.textAt
      to = from + tag - TAG_STRING
      let value: unknown
      if (tag < TAG_STRING) value = tag
      else if (tag < TAG_INT16 && to <= this.text.length)
        value = this.text.substring(from, (this.textAt = to))
      else value = this.other(tag)
      if (key in object) setField(object, key, value)
      else fields[key] = value
    }
    return object
  }

  instance(prototype: object): object {
    const tag = this.bytes[this.at]
    if (tag < TAG_OBJECT16 || tag > TAG_OBJECT_AGAIN || this.#pending >= 0) {
      const object = Object.create(prototype) as object
      this.claim(object)
      this.fieldsInto(object)
      return object
    }
    this.at++
    const shape = this.#shapeFor(tag)
    const read = shape.readOf(prototype)
    if (read !== undefined) return read(this)
    shape.used()
    const object = Object.create(prototype) as object
    for (const key of shape.keys) setField(object, key, this.value())
    return object
  }

  fieldsInto(object: object): void {
    const tag = this.bytes[this.at++]
    if (tag === TAG_OBJECT_PAIRS) this.#pairs(object)
    else if (tag >= TAG_OBJECT16 && tag <= TAG_OBJECT_AGAIN) {
      for (const key of this.#shapeFor(tag).keys) setField(object, key, this.value())
    } else this.fail('an object has no fields')
  }

  #array(length: number): unknown[] {
    const array: unknown[] = []
    this.claim(array)
    return this.#rest(array, length)
  }

  /** Two elements: made at once, because room for the second costs more than both. */
  #pair(): unknown[] {
    const at = this.at
    const view = this.view
    if (this.bytes[at] === TAG_HOLE) return this.#rest([], 2)
    // Coordinates.
    const areFloats = this.bytes[at] === TAG_FLOAT64 && this.bytes[at + 9] === TAG_FLOAT64
    if (areFloats && view !== undefined && at + 18 <= this.bodyEnd) {
      this.at = at + 18
      return [view.getFloat64(at + 1, true), view.getFloat64(at + 10, true)]
    }
    const first = this.value()
    if (this.bytes[this.at] === TAG_HOLE || this.at >= this.bodyEnd) return this.#rest([first], 2)
    return [first, this.value()]
  }

  /** The elements that `array` does not have yet. */
  #rest(array: unknown[], length: number): unknown[] {
    for (let index = array.length; index < length;) {
      const tag = this.bytes[this.at]
      if (this.at >= this.bodyEnd) this.fail('an array is longer than what is left')
      if (tag < TAG_STRING) {
        array.push(tag)
        this.at++
        index++
      } else if (tag === TAG_HOLE) index = this.#holes(array, index, length)
      else array[index++] = this.value()
    }
    return array
  }

  #holes(array: unknown[], index: number, length: number): number {
    this.at++
    const next = index + this.uint32()
    if (next > length || next === index) this.fail('a hole is longer than its array')
    // Setting the greatest length first makes the engine store elements in a table. So a few bytes that mean
    // many holes, again and again, never allocate more than the length of the frame.
    this.#holesLeft -= next - index
    if (this.#holesLeft < 0) {
      array.length = 0xffff_ffff
      this.#holesLeft += next - index
    }
    array.length = next
    return next
  }

  #numbers(): number[] {
    const count = this.count(8)
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    const array = fractionsOf(view, this.at, count)
    this.at += 8 * count
    this.claim(array)
    return array
  }

  #define(): unknown {
    const number = this.#defined.push(UNMADE) - 1
    beyondTrees.count++
    const tag = this.bytes[this.at++]
    this.#pending = isContainer(tag) ? number : -1
    const value =
      tag < TAG_INT16 || tag === TAG_REFERENCE ? this.fail('no object is defined') : this.tagged(tag)
    if (typeof value !== 'object' || value === null) this.fail('no object is defined')
    this.#pending = -1
    this.#defined[number] = value
    return value
  }

  #reference(): unknown {
    const object = this.#defined[this.uint32()]
    return object === undefined || object === UNMADE ? this.fail('a reference leads nowhere') : object
  }

  claim(object: object): void {
    if (this.#pending < 0) return
    this.#defined[this.#pending] = object
    this.#pending = -1
  }

  unclaimed(): void {
    this.#pending = -1
  }

  string(): string {
    const tag = this.bytes[this.at]
    if ((tag >= TAG_STRING && tag < TAG_INT16) || tag === TAG_STRING16 || tag === TAG_STRING32)
      return this.value() as string
    return this.fail('a text is missing')
  }

  wholeBuffer(length: number): Uint8Array | undefined {
    const { bytes, at } = this
    if (at + 5 > this.bodyEnd || bytes[at] !== TAG_ARRAY_BUFFER || uint32At(bytes, at + 1) !== length) {
      return undefined
    }
    if (this.#depth >= DEPTH_MAX) this.#tooDeep()
    this.at = at + 5
    return this.content(length)
  }

  resizables(): Resizables {
    return (this.#resizables ??= new Resizables())
  }
}

/** Kinds whose object exists before what is in it, and which a cycle may therefore lead back to. */
function isContainer(tag: number): boolean {
  return (
    (tag >= TAG_OBJECT16 && tag <= TAG_ARRAY_FLOAT64) ||
    tag === TAG_MAP ||
    tag === TAG_SET ||
    tag === TAG_ERROR ||
    tag === TAG_CLASS ||
    tag === TAG_CLASS_NAMED
  )
}
