/**
 * Bytes into values: the common kinds. read-special.ts has the rare ones.
 *
 * Nothing in a frame is trusted: every length is compared with what is left before anything is made of it, so
 * what is allocated stays within a small multiple of the frame. One reader per thread and depth of nesting;
 * all of its state is in the object.
 */
import { TransportError } from '../errors.ts'
import {
  DEPTH_MAX,
  FORMAT_VERSION,
  HEADER_BYTES,
  Resizables,
  MODE_PROCESS,
  MODE_PROCESS_TOKEN,
  MODE_SELF_CONTAINED,
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
import type { GeneratedSource } from '../classes/generate.ts'
import type { ReadShape, ReadShapeTable } from './read-shapes.ts'
import { readSpecial } from './read-special.ts'
import type { Source } from '../functions/source.ts'
import { readText } from '../text.ts'

/** In the place of an object that is defined and not yet made. */
const UNMADE = Symbol('unmade')
const bytesPrototype = Uint8Array.prototype
const { slice } = bytesPrototype
/** What a reader without a frame reads. */
const NO_BYTES = new Uint8Array(0)
/** Holes of a frame, beyond its bytes, for which there is room in arrays; see `#holes`. */
const HOLES_DENSE_MAX = 1024
/** Numbers of a frame that are read byte by byte: a view of the frame costs more than they do. */
const FLOATS_BY_BYTES = 6

/** Reads one frame after another; see the head of this file. */
export class Reader implements Source, GeneratedSource {
  bytes: Uint8Array = NO_BYTES
  isProcess = false
  at = 0
  bodyEnd = 0
  #start = 0
  #end = 0
  /** The current chunk of text, how much of it is read, and where the next one begins. */
  text = ''
  textAt = 0
  #chunkAt = 0
  #depth = 0
  /** Made when a frame turns out to hold many numbers. */
  #view: DataView | undefined = undefined
  #floats = 0
  /** Holes that may still be given room. */
  #holesLeft = 0
  #resizables: Resizables | undefined = undefined
  #pending = -1
  readonly #defined: unknown[] = []
  readonly #blocks: ReadShape[] = []
  readonly #shapes: ReadShapeTable

  constructor(shapes: ReadShapeTable) {
    this.#shapes = shapes
  }

  /**
   * The value of the frame in `bytes` from `start` to `end`.
   * @param modeAlso The mode of frames that are read besides self-contained ones.
   * @throws {TransportError} when the bytes are no frame of this version, or name what this thread does not
   *   know.
   */
  frame(bytes: Uint8Array, start: number, end: number, modeAlso: number): unknown {
    this.bytes = bytes
    this.#floats = 0
    this.#start = start
    this.#end = end
    this.#header(bytes, start, end, modeAlso)
    this.at = start + HEADER_BYTES
    this.#depth = 0
    this.#pending = -1
    const value = this.value()
    if (this.at !== this.bodyEnd) this.fail('the body does not end where it should')
    if (this.#chunkAt !== end || this.textAt !== this.text.length) this.fail('bytes follow its value')
    return value
  }

  /** Let go of what the last frame left behind. */
  end(): void {
    this.bytes = NO_BYTES
    this.#view = undefined
    this.#resizables = undefined
    this.text = ''
    if (this.#defined.length > 0) this.#defined.length = 0
    if (this.#blocks.length > 0) this.#blocks.length = 0
  }

  #header(bytes: Uint8Array, start: number, end: number, modeAlso: number): void {
    this.at = start
    this.textAt = 0
    if (end - start < HEADER_BYTES + 1 || end > bytes.length || start < 0)
      this.fail('it is shorter than a frame can be')
    if (bytes[start] !== FORMAT_VERSION) {
      throw new TransportError('TRANSPORT_VERSION', {
        version: bytes[start],
        versionKnown: FORMAT_VERSION,
      })
    }
    const mode = bytes[start + 1]
    if (mode !== MODE_SELF_CONTAINED && mode !== modeAlso) this.#refuseMode(mode)
    this.isProcess = mode !== MODE_SELF_CONTAINED
    const bodyBytes =
      bytes[start + 2] | (bytes[start + 3] << 8) | (bytes[start + 4] << 16) | (bytes[start + 5] << 24)
    if (bodyBytes <= 0 || bodyBytes > end - start - HEADER_BYTES)
      this.fail('its body is longer than the frame')
    this.#holesLeft = HOLES_DENSE_MAX + bodyBytes
    this.bodyEnd = this.#chunkAt = start + HEADER_BYTES + bodyBytes
  }

  #refuseMode(mode: number): never {
    if (mode !== MODE_PROCESS && mode !== MODE_PROCESS_TOKEN) this.fail(`mode ${mode} is unknown`)
    const why = "decode(frame, { mode: 'process' }) reads it, in the process that wrote it"
    throw new TransportError('TRANSPORT_PROCESS_FRAME', { why })
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

  /** The shortest way to a short array. */
  #array8(): unknown[] {
    if (this.at >= this.bodyEnd) this.fail('it ends within a value')
    if (++this.#depth > DEPTH_MAX) this.#tooDeep()
    const length = this.bytes[this.at++]
    const array = length === 2 ? this.#pair() : this.#rest([], length)
    this.#depth--
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
        return this.#pairs({})
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
          : this.#blocks[this.uint16()]
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
    if (shape !== undefined) this.#blocks.push(shape)
    return shape
  }

  #shaped(shape: ReadShape): object {
    if (shape.read !== undefined && this.#pending < 0) return shape.read(this)
    shape.used()
    const object: Record<string, unknown> = {}
    this.claim(object)
    const keys = shape.keys
    if (shape.isOdd)
      for (let index = 0; index < keys.length; index++) setField(object, keys[index], this.value())
    else for (let index = 0; index < keys.length; index++) object[keys[index]] = this.value()
    return object
  }

  #pairs(object: object): object {
    this.claim(object)
    const count = this.count(2)
    for (let index = 0; index < count; index++) {
      const key = this.string()
      setField(object, key, this.value())
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
    const view = this.#view
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
    // By way of the greatest length the engine keeps a table of elements instead of room for all. A few bytes
    // that stand for many holes, over and over, get no more room than the frame is long.
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
    const array: number[] = []
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    let at = this.at
    for (let index = 0; index < count; index++, at += 8) array.push(view.getFloat64(at, true))
    this.at = at
    this.claim(array)
    return array
  }

  #define(): unknown {
    const number = this.#defined.push(UNMADE) - 1
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

  characters(length: number): string {
    const from = this.textAt
    const to = from + length
    if (to <= this.text.length) {
      this.textAt = to
      return this.text.substring(from, to)
    }
    if (from !== this.text.length) this.fail('a text is longer than its chunk')
    this.#nextChunk()
    if (length > this.text.length) this.fail('a text is longer than its chunk')
    this.textAt = length
    return this.text.substring(0, length)
  }

  #nextChunk(): void {
    const at = this.#chunkAt
    if (at + 4 > this.#end) this.fail('there is less text than its values say')
    const head = uint32At(this.bytes, at)
    const isWide = (head & 1) === 1
    const bytesLength = (head >>> 1) * (isWide ? 2 : 1)
    if (bytesLength > this.#end - at - 4) this.fail('a chunk of text is longer than the frame')
    this.text = readText(this.bytes, at + 4, bytesLength, isWide)
    this.textAt = 0
    this.#chunkAt = at + 4 + bytesLength
  }

  uint8(): number {
    if (this.at >= this.bodyEnd) this.fail('it ends within a number')
    return this.bytes[this.at++]
  }

  uint16(): number {
    const at = this.at
    this.at = at + 2
    return this.bytes[at] | (this.bytes[at + 1] << 8)
  }

  uint32(): number {
    const at = this.at
    if (at + 4 > this.bodyEnd) this.fail('it ends within a number')
    this.at = at + 4
    return uint32At(this.bytes, at)
  }

  float64(): number {
    const at = this.at
    if (at + 8 > this.bodyEnd) this.fail('it ends within a number')
    this.at = at + 8
    if (this.#view === undefined) {
      if (++this.#floats <= FLOATS_BY_BYTES) return float64At(this.bytes, at)
      this.#view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    }
    return this.#view.getFloat64(at, true)
  }

  /** A count of things of which each takes `bytesMin` bytes or more. */
  count(bytesMin: number): number {
    const count = this.uint32()
    if (count * bytesMin > this.bodyEnd - this.at) this.fail('it holds less than its counts say')
    return count
  }

  raw(length: number): Uint8Array {
    if (length > this.bodyEnd - this.at) this.fail('it holds fewer bytes than its lengths say')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  copy(length: number): Uint8Array {
    const { bytes, at } = this
    if (length > this.bodyEnd - at) this.fail('it holds fewer bytes than its lengths say')
    this.at = at + length
    // Of the class itself: of others the engine asks the class what to make.
    const isOwn = Object.getPrototypeOf(bytes) === bytesPrototype
    const copy = isOwn ? slice.call(bytes, at, at + length) : new Uint8Array(bytes.subarray(at, at + length))
    // A load hook can shrink the memory that the frame lies in.
    if (copy.length !== length) this.fail('it holds fewer bytes than its lengths say')
    return copy
  }

  wholeBuffer(length: number): Uint8Array | undefined {
    const { bytes, at } = this
    if (at + 5 > this.bodyEnd || bytes[at] !== TAG_ARRAY_BUFFER || uint32At(bytes, at + 1) !== length) {
      return undefined
    }
    if (this.#depth >= DEPTH_MAX) this.#tooDeep()
    this.at = at + 5
    return this.copy(length)
  }

  resizables(): Resizables {
    return (this.#resizables ??= new Resizables())
  }

  /** The frame is damaged. @throws {TransportError} `TRANSPORT_MALFORMED`, with the place reached. */
  fail(why: string, cause?: unknown): never {
    throw this.error(why, cause)
  }

  /** The error of {@link Reader.fail}. */
  error(why: string, cause?: unknown): TransportError<'TRANSPORT_MALFORMED'> {
    const offset = Math.min(this.at, this.#end) - this.#start
    return new TransportError(
      'TRANSPORT_MALFORMED',
      { offset, why },
      cause === undefined ? undefined : { cause },
    )
  }
}

function uint32At(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0
}

const float64 = new Float64Array(1)
const float64Bytes = new Uint8Array(float64.buffer)

/** Byte by byte: a view of the frame costs more than a few numbers are worth. */
function float64At(bytes: Uint8Array, at: number): number {
  for (let index = 0; index < 8; index++) float64Bytes[index] = bytes[at + index]
  return float64[0]
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

/** Give `object` a field of its own, whatever its prototype says about the key. */
function setField(object: object, key: string, value: unknown): void {
  if (key in object) {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  } else (object as Record<string, unknown>)[key] = value
}
