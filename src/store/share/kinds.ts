/**
 * Which values can be shared, and where one is that cannot.
 *
 * A value is judged without its position, because it is written by columns; if one is refused, a walk over
 * the whole value finds the first such part and names its path.
 */
import { types } from 'node:util'
import { shown } from '../../base/index.ts'
import { StoreError } from '../errors.ts'
import { isNumbersName, type NumbersName } from './layout.ts'
import { SharedView } from './views.ts'

/** A field that a record does not have, in a column. */
export const ABSENT = Symbol('absent')
/** A row of a column that nobody reads. */
export const UNUSED = Symbol('unused')

/** The kind of a part. `view` is a part of a value that is shared already; only the others are columns. */
export type PartKind =
  | 'number'
  | 'bigint'
  | 'boolean'
  | 'string'
  | 'date'
  | 'record'
  | 'list'
  | NumbersName
  | MissingKind
  | 'view'
type MissingKind = 'null' | 'undefined' | 'absent' | 'unused'

/** Levels of a value; a deeper one refers to itself, or is not data. */
export const DEPTH_MAX = 64

const BIGINT_MAX = 2n ** 63n

/** The kind of a value; `undefined` if it cannot be shared. */
export function kindOf(value: unknown): PartKind | undefined {
  switch (typeof value) {
    case 'number':
      return 'number'
    case 'string':
      return 'string'
    case 'boolean':
      return 'boolean'
    case 'undefined':
      return 'undefined'
    case 'object':
      return value === null ? 'null' : kindOfObject(value)
    case 'bigint':
      return value >= -BIGINT_MAX && value < BIGINT_MAX ? 'bigint' : undefined
    default:
      return value === ABSENT ? 'absent' : value === UNUSED ? 'unused' : undefined
  }
}

/** Prototypes are compared by their height, so that objects of other realms are what they are there. */
function kindOfObject(object: object): PartKind | undefined {
  const prototype = Object.getPrototypeOf(object) as object | null
  if (prototype === null || prototype === Object.prototype) return 'record'
  if (object instanceof SharedView) return 'view'
  const above = Object.getPrototypeOf(prototype) as object | null
  if (above === null) return 'record'
  if (ArrayBuffer.isView(object)) {
    const name = (object as unknown as { readonly [Symbol.toStringTag]: string })[Symbol.toStringTag]
    return isNumbersName(name) ? name : undefined
  }
  if (Object.getPrototypeOf(above) !== null) return undefined
  if (Array.isArray(object)) return 'list'
  return types.isDate(object) ? 'date' : undefined
}

/**
 * The error for a value of which some part was refused.
 * @returns `undefined` if each part can be shared.
 */
export function refusalOf(root: unknown): StoreError | undefined {
  const open: Visit[] = [{ value: root, path: 'value', isEnd: false }]
  /** Objects that contain the one that is looked at. */
  const around = new Set<object>()
  const seen = new Set<object>()
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { value, path, isEnd } = step
    const kind = kindOf(value)
    if (kind === undefined) return refused(path, whatOf(value))
    if (kind !== 'record' && kind !== 'list') continue
    const object = value as object
    if (isEnd) {
      around.delete(object)
      continue
    }
    if (around.has(object)) return refused(path, 'an object that contains itself')
    if (around.size >= DEPTH_MAX) return refused(path, `nested deeper than ${DEPTH_MAX} levels`)
    if (seen.has(object)) continue
    seen.add(object)
    around.add(object)
    open.push({ value, path, isEnd: true })
    pushParts(open, object, path)
  }
  return undefined
}

interface Visit {
  readonly value: unknown
  readonly path: string
  /** Whether all parts have been looked at. */
  readonly isEnd: boolean
}

/** Pushes the parts of an object, the first one last. */
function pushParts(open: Visit[], object: object, path: string): void {
  const isList = Array.isArray(object)
  const keys = Object.keys(object)
  for (let index = keys.length - 1; index >= 0; index--) {
    const key = keys[index]
    const value: unknown = (object as Record<string, unknown>)[key]
    // Most parts are numbers and strings, which nothing can be wrong with.
    if (typeof value === 'number' || typeof value === 'string') continue
    open.push({ value, path: isList ? `${path}[${key}]` : path + accessOf(key), isEnd: false })
  }
}

/** The text of the access to a field, behind that of its record. */
export function accessOf(key: string): string {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}

function whatOf(value: unknown): string {
  if (typeof value === 'bigint') return 'a bigint of more than 64 bits'
  if (types.isMap(value)) return `${shown(value)} (share [...map.values()])`
  if (types.isSet(value)) return `${shown(value)} (share [...set])`
  return shown(value)
}

export function refused(path: string, what: string): StoreError {
  return new StoreError('STORE_NOT_SHAREABLE', { path, what })
}
