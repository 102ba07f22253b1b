/**
 * Values as their JSON text: how a thread writes its first values where a frame stays in the process.
 *
 * The engine's JSON is compiled code from the first call on, while every function of ours is interpreted at
 * first, so all that runs here is one small function. It finds out whether JSON carries the value unchanged:
 * a tree of plain objects and arrays of strings, booleans, `null` and numbers other than -0, NaN and the
 * infinities. Anything else goes the way of all later values, as do large values.
 */
import { TREE_DEPTH_MAX } from '../format.ts'
import type { FirstKind } from './kinds.ts'
import { isSet } from './leaves.ts'

/** Objects without objects in them that one value may have: more pay for shapes and code within the value. */
const LEAVES_MAX = 8192
/** Leaves at which they are compared at once, so that no graph unfolds up to {@link LEAVES_MAX}. */
const LEAVES_CHECK = 1024
/** Elements of an array, and of one that begins with a number: as text, those take longer than as bytes. */
const ELEMENTS_MAX = 8192
const NUMBERS_MAX = 1024
/** Characters of one string: a longer one is copied at once, and JSON looks at each character. */
const STRING_MAX = 1024

const plainPrototype = Object.prototype
const arrayPrototype = Array.prototype
const { getPrototypeOf } = Object
const { isArray } = Array
const tagOf = plainPrototype.toString
const { toStringTag } = Symbol
const { stringify } = JSON

const NO_KEYS: readonly string[] = []
/** The object whose keys are listed already, while a value is looked at. */
let firstObject: object | undefined
let firstKeys = NO_KEYS

/** A value as text. */
export interface JsonText {
  readonly text: string
  /** Objects of the value that contain no other object. */
  readonly leafCount: number
}

/**
 * The JSON text of an object that JSON carries unchanged; `undefined` for any other. Getters run twice.
 * `Object.prototype` has no enumerable properties: a `for-in` finds own ones.
 */
export function jsonText(object: object, kind: FirstKind): JsonText | undefined {
  // Found above all objects here, and in each by `isTree`: the method of that name decides what is written.
  if ('toJSON' in arrayPrototype) return undefined
  const leaves: object[] = []
  firstObject = kind.object
  firstKeys = kind.keys
  try {
    if (!isTree(object, leaves, 0) || !isSet(leaves)) return undefined
    return { text: stringify(object), leafCount: leaves.length }
  } catch {
    // A boxed BigInt, more characters than a string can have, or a Proxy that throws for names that later
    // values are not asked for. What a getter throws, it throws again.
    return undefined
  } finally {
    firstObject = undefined
    firstKeys = NO_KEYS
  }
}

function isTree(object: object, leaves: object[], depth: number): boolean {
  const prototype: unknown = getPrototypeOf(object)
  const leafCount = leaves.length
  // Neither a field that no loop lists nor a name of an array travels, and JSON asks both.
  if (depth > TREE_DEPTH_MAX || 'toJSON' in object) return false
  if (prototype === plainPrototype) {
    // JSON recognizes an array or a boxed primitive even if it was given this prototype, or a name.
    if (toStringTag in object || tagOf.call(object) !== '[object Object]') return false
    if (object === firstObject) {
      // A getter may encode a value of its own meanwhile.
      const keys = firstKeys
      for (let index = 0; index < keys.length; index++) {
        const value = (object as Record<string, unknown>)[keys[index]]
        if (typeof value === 'string' ? value.length > STRING_MAX : !isCarried(value, leaves, depth))
          return false
      }
    } else {
      for (const key in object) {
        const value = (object as Record<string, unknown>)[key]
        if (typeof value === 'string' ? value.length > STRING_MAX : !isCarried(value, leaves, depth))
          return false
      }
    }
  } else if (prototype === arrayPrototype && isArray(object)) {
    if (object.length > NUMBERS_MAX && (object.length > ELEMENTS_MAX || typeof object[0] === 'number'))
      return false
    for (let index = 0; index < object.length; index++) {
      const value: unknown = object[index]
      if (typeof value === 'string' ? value.length > STRING_MAX : !isCarried(value, leaves, depth))
        return false
    }
  } else return false
  if (leaves.length > leafCount) return true
  // Not by `push`, which programs replace.
  leaves[leafCount] = object
  return leafCount < LEAVES_MAX && (leafCount !== LEAVES_CHECK || isSet(leaves))
}

/** Any value but a string. */
function isCarried(value: unknown, leaves: object[], depth: number): boolean {
  // The difference of NaN or an infinity to itself is NaN.
  if (typeof value === 'number') return value === 0 ? 1 / value > 0 : value - value === 0
  if (typeof value === 'object') return value === null || isTree(value, leaves, depth + 1)
  return typeof value === 'boolean'
}
