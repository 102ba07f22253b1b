/**
 * Deep freezing of values that several readers share.
 *
 * Objects whose content freezing does not reach (Map, Set, Date, buffers, URL) are refused: a value that only
 * looks frozen would let one reader change what the others see. A RegExp with `g` or `y` is refused because
 * it could not search any more. Handles (stores, locks, zones, signals) and functions are not copies but
 * objects of this thread, so they are neither frozen nor entered. The #fields of a registered class cannot be
 * reached.
 */
import { types } from 'node:util'
import { shown } from '../base/index.ts'
import { handleOf } from '../transport/internal.ts'

/** A part that cannot be frozen. */
export interface Unfreezable {
  readonly path: string
  readonly what: string
}

/**
 * Freezes a value that was just read and that this thread has nowhere else, as `deepFreeze` does.
 * @param bytes The length of its frame.
 * @param isTree Whether it consists of plain objects, arrays and primitive values, each met once.
 * @param numbers The arrays in it that contain numbers alone, in the order in which they were read.
 */
export function freezeRead(
  root: unknown,
  bytes: number,
  isTree: boolean,
  numbers: readonly object[],
): Unfreezable | undefined {
  if (!isObject(root)) return undefined
  if (isTree && !isPolluted() && new TreeFreezer(bytes, numbers).freezes(root)) return undefined
  return deepFreeze(root)
}

/** Freezes trees, which most values are, in a fifth of the time: nothing needs a check or a descriptor. */
class TreeFreezer {
  /** Elements that arrays may still have. Each takes a byte of the frame; holes take none: then it ends. */
  #elementsLeft: number
  /** Arrays without objects: what is met in another order is walked. */
  readonly #numbers: readonly object[]
  #next = 0

  constructor(bytes: number, numbers: readonly object[]) {
    this.#elementsLeft = bytes
    this.#numbers = numbers
  }

  /** Freezes `object` and all its parts; returns false, having frozen some, if arrays are mostly holes. */
  freezes(object: object): boolean {
    if (Array.isArray(object)) return this.#freezesArray(object)
    for (const key in object) {
      const part = (object as Record<string, unknown>)[key]
      if (isObject(part) && !this.freezes(part)) return false
    }
    Object.freeze(object)
    return true
  }

  #freezesArray(array: readonly unknown[]): boolean {
    this.#elementsLeft -= array.length
    if (this.#elementsLeft < 0) return false
    if (this.#next < this.#numbers.length && array === this.#numbers[this.#next]) {
      this.#next++
      Object.freeze(array)
      return true
    }
    for (let index = 0; index < array.length; index++) {
      const part = array[index]
      if (isObject(part) && !this.freezes(part)) return false
    }
    Object.freeze(array)
    return true
  }
}

/** Whether `for-in` finds keys that are not an object's own. */
export function isPolluted(): boolean {
  for (const _key in Object.prototype) return true
  return false
}

/** Freezes `root` and its parts except handles and functions; returns a part that cannot be frozen. */
function deepFreeze(root: unknown): Unfreezable | undefined {
  if (!isObject(root)) return undefined
  const seen = new Set<object>([root])
  const open: [object, string][] = [[root, 'value']]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [object, path] = next
    if (isOpaque(object)) return { path, what: shown(object) }
    if (handleOf(object) !== undefined) continue
    for (const key of Reflect.ownKeys(object)) {
      const part: unknown = Reflect.getOwnPropertyDescriptor(object, key)?.value
      if (isObject(part) && !seen.has(part)) {
        seen.add(part)
        open.push([part, `${path}${Array.isArray(object) ? `[${String(key)}]` : `.${String(key)}`}`])
      }
    }
    Object.freeze(object)
  }
  return undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isOpaque(object: object): boolean {
  if (ArrayBuffer.isView(object) || types.isAnyArrayBuffer(object)) return true
  if (types.isRegExp(object)) return object.global || object.sticky
  return types.isMap(object) || types.isSet(object) || types.isDate(object) || object instanceof URL
}
