/**
 * Keys of a response that its schema drops: in production they would be sent, since nothing is checked there.
 * Also the maps and sets that a schema may allow, of which JSON is an empty object.
 *
 * Such a key is often a column that a query returns and no client should see. Libraries whose objects keep
 * unknown keys report none; their schemas can forbid them.
 */
import { isPlainObject } from '../../base/index.ts'
import type { SchemaIssue } from './schema.ts'

/** More would be a list of the same key in each item. */
const FOUND_MAX = 4
const DEPTH_MAX = 32

/** Issues for what `value` has and what the schema made of it, or JSON, has not. */
export function undeclared(value: unknown, checked: unknown): readonly SchemaIssue[] {
  const found: SchemaIssue[] = []
  look(value, checked, [], found)
  return found
}

/** Also an object of a class, such as an entity of a database: JSON has its own keys. */
function isSentByKeys(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return typeof (value as { toJSON?: unknown }).toJSON !== 'function'
}

function look(value: unknown, checked: unknown, path: readonly PropertyKey[], found: SchemaIssue[]): void {
  if (found.length === FOUND_MAX) return
  if ((value instanceof Map || value instanceof Set) && isSentByKeys(value))
    found.push({ path, message: `JSON of a ${value instanceof Map ? 'Map' : 'Set'} is an empty object` })
  if (value === checked || path.length > DEPTH_MAX) return
  if (Array.isArray(value) && Array.isArray(checked) && value.length === checked.length) {
    for (const [index, item] of value.entries()) look(item, checked[index], [...path, index], found)
  } else if (isSentByKeys(value) && isPlainObject(checked)) {
    for (const key of Object.keys(value)) {
      if (Object.hasOwn(checked, key)) look(value[key], checked[key], [...path, key], found)
      else if (value[key] !== undefined && found.length < FOUND_MAX)
        found.push({ path: [...path, key], message: 'the schema does not have this key' })
    }
  }
}
