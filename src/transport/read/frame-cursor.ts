/**
 * Reads the primitives of a frame: header, numbers, characters, raw bytes.
 *
 * The base of Reader (reader.ts). Nothing in a frame is trusted: each length is compared with the bytes that
 * are left before anything is allocated, so memory stays within a small multiple of the frame.
 */
import { TransportError } from '../errors.ts'
import {
  FORMAT_VERSION,
  HEADER_BYTES,
  MODE_PROCESS,
  MODE_PROCESS_TOKEN,
  MODE_SELF_CONTAINED,
} from '../format.ts'
import { readText } from '../text.ts'

const bytesPrototype = Uint8Array.prototype
const { slice, subarray } = bytesPrototype
/** Bytes from which a copy by the constructor is faster: `slice` clears the memory first. */
const CONSTRUCTED_MIN = 4096
const NO_BYTES = new Uint8Array(0)
/** Numbers of a frame that are read byte by byte: making a DataView costs more than they do. */
const FLOATS_BY_BYTES = 6

export class FrameCursor {
  bytes: Uint8Array = NO_BYTES
  isProcess = false
  /** Bytes of the value are views of the frame, see {@link FrameCursor.content}. */
  areViews = false
  at = 0
  bodyEnd = 0
  #start = 0
  #end = 0
  /** The current chunk of text, how many of its characters are read, where the next one begins. */
  text = ''
  textAt = 0
  #chunkAt = 0
  /** Made once a frame has turned out to contain many numbers. */
  protected view: DataView | undefined = undefined
  #floats = 0

  /** Begin the frame from `start` to `end`; `modeAlso` is accepted besides self-contained frames. */
  protected open(bytes: Uint8Array, start: number, end: number, modeAlso: number): void {
    this.bytes = bytes
    this.#floats = 0
    this.#start = start
    this.#end = end
    this.at = start
    this.textAt = 0
    if (end - start < HEADER_BYTES + 1 || end > bytes.length || start < 0) this.fail('too short')
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
    this.at = start + HEADER_BYTES
    this.bodyEnd = this.#chunkAt = this.at + bodyBytes
  }

  /** @throws {TransportError} `TRANSPORT_MALFORMED` when the value ends before or behind the frame. */
  protected checkEnd(): void {
    if (this.at !== this.bodyEnd) this.fail('the body does not end where it should')
    if (this.#chunkAt !== this.#end || this.textAt !== this.text.length) this.fail('bytes follow its value')
  }

  protected close(): void {
    this.bytes = NO_BYTES
    this.view = undefined
    this.text = ''
  }

  #refuseMode(mode: number): never {
    if (mode !== MODE_PROCESS && mode !== MODE_PROCESS_TOKEN) this.fail(`mode ${mode} is unknown`)
    const why = "decode(frame, { mode: 'process' }) reads it, in the process that wrote it"
    throw new TransportError('TRANSPORT_PROCESS_FRAME', { why })
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
    if (at + 4 > this.#end) this.fail('there is less text than its values need')
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
    if (this.view === undefined) {
      if (++this.#floats <= FLOATS_BY_BYTES) return float64At(this.bytes, at)
      this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    }
    return this.view.getFloat64(at, true)
  }

  /** A count of values that take `bytesMin` bytes or more each. */
  count(bytesMin: number): number {
    const count = this.uint32()
    if (count * bytesMin > this.bodyEnd - this.at) this.fail('it is shorter than its counts need')
    return count
  }

  raw(length: number): Uint8Array {
    if (length > this.bodyEnd - this.at) this.fail('it is shorter than its lengths need')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  copy(length: number): Uint8Array {
    const { bytes, at } = this
    if (length > this.bodyEnd - at) this.fail('it is shorter than its lengths need')
    this.at = at + length
    // On a subclass, `slice` would make an object of that class.
    const isSliced = length < CONSTRUCTED_MIN && Object.getPrototypeOf(bytes) === bytesPrototype
    const copy = isSliced
      ? slice.call(bytes, at, at + length)
      : new Uint8Array(subarray.call(bytes, at, at + length))
    // A load hook can shrink the memory that the frame lies in.
    if (copy.length !== length) this.fail('it is shorter than its lengths need')
    return copy
  }

  /** The next `length` bytes: a copy, unless the caller asked for views of the frame. */
  content(length: number): Uint8Array {
    if (!this.areViews) return this.copy(length)
    const { bytes, at } = this
    if (length > this.bodyEnd - at) this.fail('it is shorter than its lengths need')
    this.at = at + length
    // Not by `subarray`, which a subclass decides about. It throws where a load hook has shrunk the memory.
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length)
  }

  /** @throws {TransportError} `TRANSPORT_MALFORMED` with the offset that was reached. */
  fail(why: string, cause?: unknown): never {
    throw this.error(why, cause)
  }

  error(why: string, cause?: unknown): TransportError<'TRANSPORT_MALFORMED'> {
    const offset = Math.min(this.at, this.#end) - this.#start
    return new TransportError(
      'TRANSPORT_MALFORMED',
      { offset, why },
      cause === undefined ? undefined : { cause },
    )
  }
}

export function uint32At(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0
}

const float64 = new Float64Array(1)
const float64Bytes = new Uint8Array(float64.buffer)

function float64At(bytes: Uint8Array, at: number): number {
  for (let index = 0; index < 8; index++) float64Bytes[index] = bytes[at + index]
  return float64[0]
}
