/**
 * The constants of the frame format, version 1; docs/design/transport.md describes it byte by byte.
 *
 * A frame is a header, a body of tagged values, and a text section with the characters of all strings.
 * Numbers are little-endian. Nothing here may change while `FORMAT_VERSION` is 1: frames are stored on disks.
 */

/** First byte of every frame. */
export const FORMAT_VERSION = 1
/**
 * Second byte: the frame may use numbers of this process (shapes, classes, functions, buffers), and users
 * never hold it.
 */
export const MODE_PROCESS = 0
/** Second byte: the frame can be read anywhere. */
export const MODE_SELF_CONTAINED = 1
/**
 * Second byte: as {@link MODE_PROCESS}, but users hold the frame: the token of the process follows the text.
 */
export const MODE_PROCESS_TOKEN = 2
/**
 * Bytes of that token: too many to guess while the process runs. Not more, because the engine stores typed
 * arrays of up to 64 bytes in its own heap, and larger ones take twice as long to make.
 */
export const TOKEN_BYTES = 8
/** Version, mode, bytes of the body (u32). */
export const HEADER_BYTES = 6

/** Deepest nesting of objects in a value or a frame. */
export const DEPTH_MAX = 1000
/** Nesting at which a writer that assumes a tree suspects a cycle. */
export const TREE_DEPTH_MAX = 200
/** Longest frame: offsets stay small integers on every platform. */
export const FRAME_BYTES_MAX = 0x3fff_ffff
/** Most characters of a chunk of text, except of one string alone. */
export const CHUNK_CHARS = 8192
/** Most keys of an object that is written by shape; a larger one carries its keys as strings. */
export const SHAPE_KEYS_MAX = 256
/** Longest key of a shape, in characters. */
export const SHAPE_KEY_CHARS_MAX = 255

/** 0..127 are themselves. From here on 64 tags mean "string of 0..63 characters". */
export const TAG_STRING = 0x80
export const TAG_INT16 = 0xc0
export const TAG_INT32 = 0xc1
export const TAG_FLOAT64 = 0xc2
/** u16 characters. */
export const TAG_STRING16 = 0xc3
/** u32 characters. */
export const TAG_STRING32 = 0xc4
export const TAG_NULL = 0xc5
export const TAG_UNDEFINED = 0xc6
export const TAG_TRUE = 0xc7
export const TAG_FALSE = 0xc8
/** Only as an element of an array. */
export const TAG_HOLE = 0xc9
/** u8 sign (1 = negative), u32 bytes, magnitude. */
export const TAG_BIGINT = 0xca
/** f64 milliseconds, NaN for an invalid date. */
export const TAG_DATE = 0xcb
/** Source, flags, lastIndex as values. */
export const TAG_REGEXP = 0xcc
/** u32 entries, then key and value of each. */
export const TAG_MAP = 0xcd
/** u32 entries, then each. */
export const TAG_SET = 0xce
/** Plain object by process-wide shape: u16 number, values. */
export const TAG_OBJECT16 = 0xd0
/** Plain object by process-wide shape: u32 number, values. */
export const TAG_OBJECT32 = 0xd1
/** Plain object with its keys: a shape block, values. Blocks of a frame count from 0. */
export const TAG_OBJECT_KEYS = 0xd2
/** Plain object with the keys of an earlier block: u16 which, values. */
export const TAG_OBJECT_AGAIN = 0xd3
/** Plain object of any size: u32 entries, key string and value of each. */
export const TAG_OBJECT_PAIRS = 0xd4
/** Object without prototype: as TAG_OBJECT_PAIRS. */
export const TAG_OBJECT_NULL = 0xd5
/** u8 elements. */
export const TAG_ARRAY8 = 0xd6
/** u32 elements. */
export const TAG_ARRAY32 = 0xd7
/** Array of numbers only: u32 elements, f64 each. */
export const TAG_ARRAY_FLOAT64 = 0xd8
/** Kind, fields; see write-error.ts. */
export const TAG_ERROR = 0xda
/** u32 bytes and the bytes. */
export const TAG_ARRAY_BUFFER = 0xdb
/** u32 bytes, u32 bytes it can grow to, and the bytes. */
export const TAG_ARRAY_BUFFER_RESIZABLE = 0xdc
/** u8 kind, u32 offset, u32 elements, the buffer as a value. */
export const TAG_VIEW = 0xdd
/** A Buffer over part of a pool: u32 bytes and the bytes. */
export const TAG_NODE_BUFFER = 0xde
/** SharedArrayBuffer of this process: u32 id. */
export const TAG_SHARED_BUFFER = 0xdf
/** ArrayBuffer moved within this process: u32 id. */
export const TAG_MOVED_BUFFER = 0xe0
/** The address as a string value. */
export const TAG_URL = 0xe1
/** Object of a registered class, by process-wide class number: u32 number, u32 version, what was saved. */
export const TAG_CLASS = 0xe2
/** Object of a registered class, by name: cid string, u32 version, what was saved. */
export const TAG_CLASS_NAMED = 0xe3
/** Kind as a string, what was saved. */
export const TAG_HANDLE = 0xe4
/** u32 process-wide function number. */
export const TAG_FUNCTION = 0xe5
/** The object that follows occurs again: it gets the next reference number, from 0. */
export const TAG_DEFINE = 0xe6
/** An object that occurred before: u32 reference number. */
export const TAG_REFERENCE = 0xe7
/** A Number, String, Boolean or BigInt object: its primitive as a value. */
export const TAG_BOXED = 0xe8

/** Object of one of Node's classes: its name as a string, what was saved. */
export const TAG_PLATFORM = 0xe9
/** Function with captured values: u32 process-wide number of what makes it, the values as an array. */
export const TAG_CAPTURING = 0xea
/** The JSON text of a tree of plain objects and arrays, as a string. Process mode only. */
export const TAG_JSON = 0xeb
/** The bytes that V8 serializes an object to, behind their number. Process mode only. */
export const TAG_SERIALIZED = 0xec

/** View kinds: the position in this list is the number in the frame; append only. */
export const VIEW_KINDS = [
  'DataView',
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
  'Buffer',
  'Float16Array',
] as const

/** Error classes of the language: the position in this list is the number in the frame; append only. */
export const ERROR_KINDS = [
  'Error',
  'EvalError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
  'AggregateError',
  'DOMException',
  'SuppressedError',
] as const

/**
 * Largest `maxByteLength` of a resizable buffer of `length` bytes: address space is reserved for it.
 */
function growthMax(length: number): number {
  return length * 64 + 0x100_0000
}

/**
 * Most resizable buffers in a frame: each uses memory mappings, whose number per process is limited.
 */
const RESIZABLE_MAX = 64

/** Largest sum of `maxByteLength` of a frame's resizable buffers of `length` bytes together. */
function growthFrameMax(length: number): number {
  return length * 64 + 0x1000_0000
}

/** Counts the resizable buffers of one frame, for the writer and the reader. */
export class Resizables {
  #count = 0
  #bytes = 0
  #bytesMax = 0

  /** Counts a buffer of `length` bytes that can grow to `lengthMax`; returns why it is too much, if it is. */
  tooMuch(length: number, lengthMax: number): string | undefined {
    this.#bytes += length
    this.#bytesMax += lengthMax
    if (lengthMax > growthMax(length)) return `it can grow to more than ${growthMax(length)} bytes`
    if (++this.#count > RESIZABLE_MAX) return `more than ${RESIZABLE_MAX} resizable buffers in one frame`
    const most = growthFrameMax(this.#bytes)
    return this.#bytesMax > most
      ? `the resizable buffers of a frame can grow to more than ${most} bytes`
      : undefined
  }
}
