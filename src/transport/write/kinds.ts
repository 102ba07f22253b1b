/**
 * Which frames hold the first values of their kind, which are written before generated code pays.
 *
 * Code for a kind of value pays once many of that kind have come, so each kind has a budget of its own. All
 * together have one as well; behind it no kind is looked at. A kind is a hash of the keys of the first
 * object: arguments of one call site, results of one function, pages of one table.
 */
import { lookOf } from '../classes/shapes.ts'

/** Leaves of a thread that are written by plain loops where they are not written as JSON. */
const PLAIN_LEAVES = 16_384
/** Leaves of one kind that are first values. */
const KIND_LEAVES = 65_536
/** Leaves of a thread up to which kinds are looked at. */
const ALL_LEAVES = 524_288
/** Leaves that a frame counts beside its own, for what a small frame costs without them. */
const FRAME_LEAVES = 64
/** Kinds that are counted apart. A power of two. */
const KINDS = 1024
/** Keys from which an object is a dictionary, of which no two have the same keys. */
const KEYS_MAX = 24
/** Values of a kind that V8 was not to write, after which the next ones are not looked at for it. */
const REFUSED_MAX = 4
/** Elements among which the first object of an array is looked for, and arrays within each other. */
const ELEMENTS_MAX = 4
const NESTING_MAX = 3

const plainPrototype = Object.prototype
const { getPrototypeOf, keys: keysOf } = Object
const { isArray } = Array

let plainLeft = PLAIN_LEAVES
let allLeft = ALL_LEAVES
let kindMax = KIND_LEAVES
/** Leaves of each kind so far. */
const written = new Int32Array(KINDS)
const refused = new Uint8Array(KINDS)

/** The kind of a value, and the object that shows it. */
export interface FirstKind {
  readonly number: number
  /** The first plain object; its keys are listed once, as a list of a table's takes as long as writing it. */
  readonly object: object | undefined
  readonly keys: readonly string[]
}

const NO_OBJECT: FirstKind = { number: 0, object: undefined, keys: [] }

/**
 * Sets how many leaves of this thread, and of one kind, are first values from now on; 0: none. For tests.
 */
export function setFirstLeaves(count: number, ofKind = count): void {
  plainLeft = allLeft = count
  kindMax = ofKind
  written.fill(0)
  refused.fill(0)
}

/** Whether the kind of a frame of process mode has to be looked at. */
export function areKindsLeft(): boolean {
  return allLeft > 0
}

/** Whether a frame may be written by plain loops. */
export function arePlainLeft(): boolean {
  return plainLeft > 0
}

/** Whether the next value of this kind is one of its first. */
export function isNew(kind: FirstKind): boolean {
  return written[kind.number] < kindMax
}

/** Count the leaves of a frame; `kind` is the number of its kind, or -1 where that was not looked at. */
export function countLeaves(leaves: number, kind: number): void {
  plainLeft -= leaves
  allLeft -= leaves + FRAME_LEAVES
  if (kind >= 0) written[kind] += leaves + FRAME_LEAVES
}

/** Whether V8 may write the next value of a kind. */
export function isSerializable(kind: number): boolean {
  return refused[kind] < REFUSED_MAX
}

/** Count a value of a kind that V8 was not to write. */
export function countRefused(kind: number): void {
  refused[kind]++
}

/** The kind of the value of a frame. */
export function kindOf(value: object): FirstKind {
  let object: object | undefined = value
  for (let depth = 0; depth < NESTING_MAX && isArray(object); depth++) object = firstIn(object)
  if (object === undefined || getPrototypeOf(object) !== plainPrototype) return NO_OBJECT
  const keys = keysOf(object)
  let hash = keys.length
  if (hash <= KEYS_MAX)
    for (let index = 0; index < keys.length; index++) hash = (Math.imul(hash, 31) + lookOf(keys[index])) | 0
  return { number: (hash ^ (hash >>> 15)) & (KINDS - 1), object, keys }
}

function firstIn(array: readonly unknown[]): object | undefined {
  for (let index = 0; index < array.length && index < ELEMENTS_MAX; index++) {
    const element = array[index]
    if (typeof element === 'object' && element !== null) return element
  }
  return undefined
}
