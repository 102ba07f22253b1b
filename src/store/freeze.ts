/**
 * Values that several readers share, made so that none of them can change them.
 *
 * What keeps its content where freezing does not reach (Map, Set, Date, buffers, URL) is refused: a value
 * that only looks frozen would let one reader change what the others see. So is a RegExp with `g` or `y`,
 * which could not search any more. Handles (stores, locks, zones, signals) and functions are not copies but
 * this thread's own things, which everybody here has: they are left as they are, and not entered. What an
 * object of a registered class keeps in #fields, or its hooks elsewhere, cannot be seen from here.
 */
import { types } from 'node:util'
import { shown } from '../base/index.ts'
import { handleOf } from '../transport/internal.ts'

/** A part that cannot be frozen: where it is, and what. */
export interface Unfreezable {
  readonly path: string
  readonly what: string
}

/**
 * Freeze `root` and everything it holds but handles and functions. Returns what cannot be frozen, if there is
 * such a part.
 */
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

/** Functions are none: see the module's text. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isOpaque(object: object): boolean {
  if (ArrayBuffer.isView(object) || types.isAnyArrayBuffer(object)) return true
  if (types.isRegExp(object)) return object.global || object.sticky
  return types.isMap(object) || types.isSet(object) || types.isDate(object) || object instanceof URL
}
