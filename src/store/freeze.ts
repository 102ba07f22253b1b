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

/** Freezes `root` and its parts except handles and functions; returns a part that cannot be frozen. */
export function deepFreeze(root: unknown): Unfreezable | undefined {
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
