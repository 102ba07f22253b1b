/**
 * The shapes of plain objects (their ordered keys), as the reader caches them.
 *
 * By process-wide number, and by the bytes of a key block. Both tables are bounded. Keys from a frame are any
 * text: `__proto__` becomes a field like any other.
 */
import { SHAPE_KEYS_MAX } from '../format.ts'
import {
  CodeBudget,
  generateReader,
  generateTableReader,
  isGenerable,
  type Generated,
  type ReadFields,
} from '../generate.ts'
import { processTables, TABLE_SHAPES } from '../process.ts'

/** Process-wide numbers cached by this thread. */
const NUMBERS_MAX = 8192
/** Classes whose objects may have one shape and code for it. */
const CLASSES_MAX = 8
/** Keys beyond which the engine copies a table of them faster than it makes a literal. */
const NARROW_KEYS_MAX = 128
/** Literals of more keys take less memory than tables: they are for rows, at least every second object. */
const WIDE_SHARE = 2
/** Slots for blocks. A power of two. */
const SLOTS = 1024

const budget = new CodeBudget()
/** For readers of tables: each has one call of its own, which the engine need not compile. */
const tables = new CodeBudget()

/** One list of keys in one order. */
export class ReadShape implements Generated {
  readonly keys: readonly string[]
  /** Objects read without generated code: decides when to generate. */
  uses = 0
  /** Objects read without generated code when this shape was met. */
  readonly since = budget.looped
  /** Generated, once the shape has been used often enough. */
  read: ReadFields | undefined = undefined
  /** True when a plain assignment of some key would not make a field. */
  readonly isOdd: boolean
  /** Has too many keys for a literal, unless it is the shape of rows. */
  readonly #isWide: boolean
  /** {@link ReadShape.read} copies a table; objects of classes are read without code then. */
  #isTable = false

  /** Readers for objects of classes: the last one, and all by prototype. */
  #class: object | undefined = undefined
  #readClass: ReadFields | undefined = undefined
  readonly #classes = new Map<object, ReadFields | undefined>()

  constructor(keys: readonly string[]) {
    this.keys = keys
    this.#isWide = keys.length > NARROW_KEYS_MAX && isGenerable(keys)
    this.isOdd = keys.some((key) => key in Object.prototype)
  }

  /** The reader for objects of `prototype`, once there have been enough; `undefined` until then. */
  readOf(prototype: object): ReadFields | undefined {
    if (this.#class === prototype) return this.#readClass
    if (this.read === undefined || this.#isTable) return undefined
    if (!this.#classes.has(prototype)) {
      if (this.#classes.size >= CLASSES_MAX) return undefined
      // Assigning a key that the prototype has would not make a field.
      const isFree = !this.keys.some((key) => key in prototype) && budget.admitsMore(this)
      this.#classes.set(prototype, isFree ? generateReader(this.keys, prototype) : undefined)
    }
    this.#class = prototype
    return (this.#readClass = this.#classes.get(prototype))
  }

  /** Counts an object of this shape that was read without generated code. */
  used(): void {
    this.uses++
    budget.looped++
    if (this.read !== undefined) return
    if (budget.pays(this, this.#isWide ? WIDE_SHARE : undefined)) {
      if (budget.admits(this)) this.read = generateReader(this.keys)
    } else if (this.#isWide && this.uses >= tables.usesMin && tables.admits(this)) {
      this.read = generateTableReader(this.keys)
      this.#isTable = true
    }
  }

  forget(): void {
    this.read = this.#class = this.#readClass = undefined
    this.#classes.clear()
    this.#isTable = false
    this.uses = 0
  }
}

export class ReadShapeTable {
  /** By process-wide number, as far as this thread has met them. */
  readonly byNumber: (ReadShape | undefined)[] = []
  #remembered = 0
  readonly #blocks = new Array<Block | undefined>(SLOTS).fill(undefined)
  /** The block that was read last: values of a store with a file often have the same. */
  #last: Block | undefined = undefined

  /** The shape of this process-wide number, if it exists. */
  numbered(number: number): ReadShape | undefined {
    return this.byNumber[number] ?? this.#learn(number)
  }

  #learn(number: number): ReadShape | undefined {
    const keys = processTables().interned(TABLE_SHAPES, number)
    if (keys === undefined) return undefined
    const shape = new ReadShape(JSON.parse(keys) as string[])
    if (this.#remembered++ >= NUMBERS_MAX) {
      this.byNumber.fill(undefined)
      this.#remembered = 1
    }
    while (this.byNumber.length < number) this.byNumber.push(undefined)
    this.byNumber[number] = shape
    return shape
  }

  /** The shape of the block that was read last, if that is the one in `bytes` from `start` to `end`. */
  again(bytes: Uint8Array, start: number, end: number): ReadShape | undefined {
    const last = this.#last
    return last !== undefined && isSame(last.bytes, bytes, start, end) ? last.shape : undefined
  }

  /**
   * The shape of the block in `bytes` from `start` (after its length) to `end`; `undefined` when its own
   * lengths contradict each other.
   */
  block(bytes: Uint8Array, start: number, end: number): ReadShape | undefined {
    const slot = blockHash(bytes, start, end) & (SLOTS - 1)
    const known = this.#blocks[slot]
    if (known !== undefined && isSame(known.bytes, bytes, start, end)) {
      this.#last = known
      return known.shape
    }
    const keys = blockKeys(bytes, start, end)
    if (keys === undefined) return undefined
    const shape = new ReadShape(keys)
    this.#last = this.#blocks[slot] = { bytes: bytes.slice(start, end), shape }
    return shape
  }
}

/** A block of keys as frames contain it. */
interface Block {
  readonly bytes: Uint8Array
  readonly shape: ReadShape
}

function blockHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start
  // The ends of keys differ more often than their beginnings: the last sixteen bytes differ for most blocks.
  for (let index = Math.max(start, end - 16); index < end; index++)
    hash = (Math.imul(hash, 31) + bytes[index]) | 0
  const middle = (start + end) >> 1
  for (let index = middle; index < Math.min(end, middle + 8); index++)
    hash = (Math.imul(hash, 31) + bytes[index]) | 0
  return hash ^ (hash >>> 13)
}

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (known.length !== end - start) return false
  for (let index = 0; index < known.length; index++) if (known[index] !== bytes[start + index]) return false
  return true
}

function blockKeys(bytes: Uint8Array, start: number, end: number): string[] | undefined {
  if (end - start < 2) return undefined
  const head = bytes[start] | (bytes[start + 1] << 8)
  const count = head & 0x7fff
  // A writer makes no larger ones, and the code for one would be of any size.
  if (count > SHAPE_KEYS_MAX) return undefined
  const isWide = head >= 0x8000
  const textStart = start + 2 + count
  if (textStart > end) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + textStart, end - textStart).toString(
    isWide ? 'utf16le' : 'latin1',
  )
  const keys: string[] = []
  let used = 0
  for (let index = 0; index < count; index++) {
    const length = bytes[start + 2 + index]
    keys.push(text.slice(used, used + length))
    used += length
  }
  const bytesUsed = isWide ? used * 2 : used
  return bytesUsed === end - textStart && new Set(keys).size === count ? keys : undefined
}

/** Set an own field of `object`, also when its prototype has the key. */
export function setField(object: object, key: string, value: unknown): void {
  if (key in object) {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  } else (object as Record<string, unknown>)[key] = value
}
