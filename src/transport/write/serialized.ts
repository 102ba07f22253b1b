/**
 * Values as V8 serializes them: how a thread writes its first values that JSON would change, where a frame
 * stays in the process.
 *
 * V8 takes an object of any class for a plain one, and writes an object by what it was made as. So one small
 * recursive function looks at all objects first, as in json.ts: V8 writes trees and graphs of plain objects,
 * arrays without holes, dates, Maps and Sets. V8 keeps track of objects that it meets again.
 */
import { types } from 'node:util'
import { CHUNK_CHARS, TREE_DEPTH_MAX } from '../format.ts'

/** Objects that one value may have: more pay for shapes and code within the value. */
const OBJECTS_MAX = 8192
/** Elements of an array that begins with a number: more take longer than as bytes of one kind. */
const NUMBERS_MAX = 1024
/** What {@link countIn} returns for a value that V8 would change, or write slowly. */
const NONE = -1

const plainPrototype = Object.prototype
const arrayPrototype = Array.prototype
const datePrototype = Date.prototype
const mapPrototype = Map.prototype
const setPrototype = Set.prototype
const forEachOfMap = mapPrototype.forEach
const forEachOfSet = setPrototype.forEach
const tagOf = plainPrototype.toString
const { toStringTag } = Symbol
const { getPrototypeOf, keys: keysOf } = Object
const { isArray } = Array
const { isView } = ArrayBuffer
const { isAnyArrayBuffer, isBigIntObject, isDate, isMap, isSet } = types

let Serializer: typeof import('node:v8').Serializer | undefined

/** A value as bytes. */
export interface Serialized {
  readonly bytes: Uint8Array
  /** Objects of the value. */
  readonly objectCount: number
}

/** The bytes of an object that V8 carries unchanged; `undefined` for any other. Getters run twice. */
export function serialized(object: object): Serialized | undefined {
  try {
    const objectCount = countIn(object, 0, 0)
    if (objectCount === NONE) return undefined
    Serializer ??= process.getBuiltinModule('node:v8').Serializer
    const serializer = new Serializer()
    serializer.writeHeader()
    serializer.writeValue(object)
    return { bytes: serializer.releaseBuffer(), objectCount }
  } catch {
    // A Proxy, or more than V8 writes. What a getter throws, it throws again the other way.
    return undefined
  }
}

/** How many objects there are, with `count` before this one; {@link NONE} if V8 does not carry them. */
function countIn(object: object, count: number, depth: number): number {
  const prototype: unknown = getPrototypeOf(object)
  if (depth > TREE_DEPTH_MAX || count > OBJECTS_MAX) return NONE
  let total = count + 1
  if (prototype === plainPrototype) {
    if (isOfOtherKind(object)) return NONE
    for (const key in object) {
      const value = (object as Record<string, unknown>)[key]
      if (typeof value === 'object' && value !== null) total = countIn(value, total, depth + 1)
      else if (!isCarried(value)) return NONE
      if (total === NONE) return NONE
    }
    return total
  }
  if (prototype === datePrototype) return isDate(object) ? total : NONE
  if (prototype === arrayPrototype && isArray(object)) {
    const { length } = object
    if (length > OBJECTS_MAX || (length > NUMBERS_MAX && typeof object[0] === 'number')) return NONE
    // V8 writes what else an array has, too; indices are listed first.
    const keys = keysOf(object)
    if (keys.length !== length || (length > 0 && keys[length - 1] !== String(length - 1))) return NONE
    for (let index = 0; index < length && total !== NONE; index++)
      total = countOf(object[index], total, depth)
    return total
  }
  if (prototype === mapPrototype && isMap(object))
    forEachOfMap.call(object, (value, key) => {
      if (total !== NONE) total = countOf(key, total, depth)
      if (total !== NONE) total = countOf(value, total, depth)
    })
  else if (prototype === setPrototype && isSet(object))
    forEachOfSet.call(object, (value) => {
      if (total !== NONE) total = countOf(value, total, depth)
    })
  else return NONE
  return total
}

function countOf(value: unknown, count: number, depth: number): number {
  if (typeof value === 'object' && value !== null) return countIn(value, count, depth + 1)
  return isCarried(value) ? count : NONE
}

/** Any value but an object. */
function isCarried(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= CHUNK_CHARS
  return typeof value !== 'function' && typeof value !== 'symbol'
}

/** Whether an object that was given the prototype of plain objects was made as something else. */
function isOfOtherKind(object: object): boolean {
  if (toStringTag in object || tagOf.call(object) !== '[object Object]') return true
  if (isMap(object) || isSet(object) || isBigIntObject(object)) return true
  return isAnyArrayBuffer(object) || isView(object)
}
