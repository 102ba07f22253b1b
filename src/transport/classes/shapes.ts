/**
 * The shapes of plain objects (their ordered keys), as the writer caches them.
 *
 * A fixed table of slots, two to a set and two sets for a shape: a shape stays while it is used and is
 * replaced when others need its slot, so a million different objects cost a million look-ups and no memory. A
 * shape gets a process-wide number only after `NUMBER_AFTER` objects, because those numbers are never reused;
 * until then, and when the process-wide table is full, the frame contains its keys.
 */
import type { ClassWriter } from '../class-entry.ts'
import { SHAPE_KEYS_MAX, SHAPE_KEY_CHARS_MAX, TREE_DEPTH_MAX } from '../format.ts'
import { CodeBudget, generateWriter, isGenerable, type Generated, type WriteObject } from '../generate.ts'
import { processTables, TABLE_SHAPES } from '../process.ts'

/** Objects of one shape before it is numbered. */
const NUMBER_AFTER = 8
/** Uses after which a full process-wide table is tried again. */
const ASK_AGAIN_AFTER = 4096
/** Sets of two slots. A power of two. */
const SETS = 2048
/** Hashes of shapes that were met once. A power of two. */
const MET_ONCE = 4096
/** Objects of new keys in a row after which only every eighth is looked up. */
const NEW_MAX = 64
/** Most keys of which all characters are hashed: of a dictionary that would take as long as writing it. */
const HASHED_KEYS_MAX = 16
/**
 * Keys beyond which an object is written from lists of its keys and values, and gets no code.
 */
const NAMED_KEYS_MAX = 40
/** Most claims of other shapes to a slot before its shape is replaced. */
const HEAT_MAX = 64

const budget = new CodeBudget()

/** The expected writer of an object: always checked before it is used. */
export type Guess = WriteShape | ClassWriter

/** One list of keys in one order. */
export class WriteShape implements Generated {
  readonly prototype: object = Object.prototype
  readonly keys: readonly string[]
  readonly hash: number
  /** Too many keys for code; its objects are written from lists. */
  readonly isLarge: boolean
  /** The keys as a frame contains them. */
  readonly block: Uint8Array
  /** Objects written without generated code: decides when to number and to generate. */
  uses = 0
  heat = 1
  /** Objects written without generated code when this shape was met. */
  readonly since = budget.looped
  /** Process-wide number, or 0. */
  number = 0
  /** The frame that last carried the keys, and which block of that frame they are. */
  frame = 0
  frameIndex = 0
  /** The writer of the last object in each field: a guess, always checked. */
  readonly inner: (Guess | undefined)[]
  /** Generated, once the shape has been used often enough. */
  write: WriteObject | undefined = undefined

  constructor(keys: readonly string[], hash: number, block: Uint8Array) {
    this.keys = keys
    this.hash = hash
    this.isLarge = keys.length > NAMED_KEYS_MAX
    this.block = block
    this.inner = new Array<Guess | undefined>(keys.length).fill(undefined)
  }

  /**
   * Whether the plain `object` has exactly these keys in this order.
   */
  fits(object: object): boolean {
    const keys = this.keys
    let index = 0
    for (const key in object) if (key !== keys[index++]) return false
    return index === keys.length
  }

  /** Whether these are the keys, in this order. */
  has(keys: readonly string[]): boolean {
    const own = this.keys
    if (keys.length !== own.length) return false
    for (let index = 0; index < own.length; index++) if (keys[index] !== own[index]) return false
    return true
  }

  /** Counts an object of this shape that was written without generated code. */
  used(): void {
    this.uses++
    if (this.number === 0 && this.uses % ASK_AGAIN_AFTER === NUMBER_AFTER) {
      this.number = processTables().intern(TABLE_SHAPES, JSON.stringify(this.keys))
    }
    budget.looped++
    if (this.write !== undefined || this.isLarge || !budget.pays(this) || !isGenerable(this.keys)) return
    if (budget.admits(this)) {
      this.write = generateWriter(this, TREE_DEPTH_MAX)
    }
  }

  forget(): void {
    this.write = undefined
    this.uses = NUMBER_AFTER
  }
}

export class ShapeTable {
  readonly #slots = new Array<WriteShape | undefined>(SETS * 2).fill(undefined)
  readonly #metOnce = new Int32Array(MET_ONCE)
  /** Objects in a row whose keys were new, or were not looked up. */
  #newCount = 0

  /**
   * The shape of a plain object; `undefined` when it has too many or too long keys for one, and for the first
   * object of a shape: where keys are ever new, no table remembers them.
   * @param isKept Whether the first object has a shape too.
   * @param isExact False: a shape that has code may be of other keys with the same hash, since its code
   *   compares them anyway.
   */
  find(object: object, isKept = false, isExact = true): WriteShape | undefined {
    if (this.#isSkipped(isKept)) return undefined
    let hash = 0
    let count = 0
    for (const key in object) {
      hash = (Math.imul(hash, 31) + lookOf(key)) | 0
      if (++count > SHAPE_KEYS_MAX) return undefined
    }
    hash = mixed(hash)
    const set = (hash & (SETS - 1)) * 2
    for (let slot = set; slot < set + 2; slot++) {
      const shape = this.#slots[slot]
      if (shape === undefined || shape.hash !== hash) continue
      if ((shape.write !== undefined && !isExact) || shape.fits(object)) return this.#met(shape)
    }
    const keys = Object.keys(object)
    // Otherwise some of the keys are inherited.
    return keys.length === count ? this.#findFurther(keys, { hash, set }, isKept) : undefined
  }

  /** As {@link ShapeTable.find}, for an object whose keys have been listed. */
  findListed(keys: readonly string[], isKept: boolean): WriteShape | undefined {
    if (keys.length > SHAPE_KEYS_MAX || this.#isSkipped(isKept)) return undefined
    let hash = 0
    for (let index = 0; index < keys.length; index++) hash = (Math.imul(hash, 31) + lookOf(keys[index])) | 0
    hash = mixed(hash)
    const first: SlotSet = { hash, set: (hash & (SETS - 1)) * 2 }
    return this.#inSet(keys, first) ?? this.#findFurther(keys, first, isKept)
  }

  #isSkipped(isKept: boolean): boolean {
    return !isKept && this.#newCount > NEW_MAX && (++this.#newCount & 7) !== 0
  }

  #met(shape: WriteShape): WriteShape {
    if (shape.heat < HEAT_MAX) shape.heat++
    this.#newCount = 0
    return shape
  }

  /** When a set is full, a third shape has a second set, by a hash of all characters. */
  #findFurther(keys: readonly string[], first: SlotSet, isKept: boolean): WriteShape | undefined {
    const hash = wholeHash(keys)
    const second: SlotSet = { hash, set: (hash & (SETS - 1)) * 2 }
    const isFull = this.#slots[first.set] !== undefined && this.#slots[first.set + 1] !== undefined
    const known = isFull ? this.#inSet(keys, second) : undefined
    if (!isKept && known === undefined && this.#metOnce[hash & (MET_ONCE - 1)] !== (hash | 0)) {
      this.#metOnce[hash & (MET_ONCE - 1)] = hash
      this.#newCount++
      return undefined
    }
    this.#newCount = 0
    return known ?? this.#insert(keys, isFull ? [first, second] : [first])
  }

  #inSet(keys: readonly string[], { hash, set }: SlotSet): WriteShape | undefined {
    for (let slot = set; slot < set + 2; slot++) {
      const shape = this.#slots[slot]
      if (shape !== undefined && shape.hash === hash && shape.has(keys)) return this.#met(shape)
    }
    return undefined
  }

  /**
   * A new shape, in a free slot, or in that of the coldest shape once others have claimed it often enough.
   */
  #insert(keys: readonly string[], sets: readonly SlotSet[]): WriteShape | undefined {
    const block = keyBlock(keys)
    if (block === undefined) return undefined
    let [hash, slot, heat] = [0, 0, Infinity]
    for (const candidate of sets) {
      for (let at = candidate.set; at < candidate.set + 2; at++) {
        const heatAt = this.#slots[at]?.heat ?? 0
        if (heatAt < heat) [hash, slot, heat] = [candidate.hash, at, heatAt]
      }
    }
    const made = new WriteShape(keys, hash, block)
    const victim = this.#slots[slot]
    if (victim === undefined || --victim.heat <= 0) this.#slots[slot] = made
    return made
  }
}

/** A set, by the number of its first slot, and the hash that led there. */
interface SlotSet {
  readonly hash: number
  readonly set: number
}

/**
 * A key's part in the first hash: its length and last character, which differ for most lists of keys. Hashing
 * more of each key costs more than it saves.
 */
export function lookOf(key: string): number {
  const length = key.length
  return length * 131 + key.charCodeAt(length - 1)
}

function mixed(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0
}

/** A hash of all characters of all keys; of many keys, those of some eight in equal distances. */
function wholeHash(keys: readonly string[]): number {
  let hash = keys.length
  const step = keys.length > HASHED_KEYS_MAX ? Math.floor(keys.length / (HASHED_KEYS_MAX / 2)) : 1
  for (let at = 0; at < keys.length; at += step) {
    const key = keys[at]
    for (let index = 0; index < key.length; index++)
      hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
    hash = Math.imul(hash ^ (hash >>> 13), 0x2c1b3c6d)
  }
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * The keys as bytes: u16 bytes that follow, u16 count with the top bit set when characters take two bytes, a
 * length byte per key, the characters of all keys. `undefined` when they exceed the limits of a shape.
 */
function keyBlock(keys: readonly string[]): Uint8Array | undefined {
  if (keys.length > SHAPE_KEYS_MAX || keys.some((key) => key.length > SHAPE_KEY_CHARS_MAX)) return undefined
  const text = keys.join('')
  const isWide = /[^\0-\xff]/.test(text)
  const bytesAfter = 2 + keys.length + text.length * (isWide ? 2 : 1)
  if (bytesAfter > 0xffff) return undefined
  const block = Buffer.alloc(2 + bytesAfter)
  block.writeUInt16LE(bytesAfter, 0)
  block.writeUInt16LE(keys.length | (isWide ? 0x8000 : 0), 2)
  keys.forEach((key, index) => block.writeUInt8(key.length, 4 + index))
  block.write(text, 4 + keys.length, isWide ? 'utf16le' : 'latin1')
  return new Uint8Array(block.buffer, block.byteOffset, block.byteLength)
}
