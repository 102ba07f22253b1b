/**
 * Values that several readers share, made so that none of them can change them.
 *
 * What keeps its content where freezing does not reach (Map, Set, Date, buffers, URL) is refused: a value
 * that only looks frozen would let one reader change what the others see.
 */
import { types } from 'node:util'
import { shown } from '../base/index.ts'

/** A part that cannot be frozen: where it is, and what. */
export interface Unfreezable {
  readonly path: string
  readonly what: string
}

/** Freeze `root` and everything it holds. Returns what cannot be frozen, if there is such a part. */
export function deepFreeze(root: unknown): Unfreezable | undefined {
  if (!isObject(root)) return undefined
  const seen = new Set<object>([root])
  const open: [object, string][] = [[root, 'value']]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [object, path] = next
    if (isOpaque(object)) return { path, what: shown(object) }
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
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isOpaque(object: object): boolean {
  if (ArrayBuffer.isView(object) || types.isAnyArrayBuffer(object)) return true
  return types.isMap(object) || types.isSet(object) || types.isDate(object) || object instanceof URL
}
