/**
 * The table of schemas of an OpenAPI document, and JSON Schemas on their way into it.
 *
 * A schema that comes alone refers to its own root (`#`) and definitions (`#/$defs/User`). Within a document
 * these references would be read from the document's root, so definitions are moved to the components and
 * references follow. Equal definitions of one name are one component.
 */
import { isPlainObject } from '../../base/index.ts'

type JsonSchema = Record<string, unknown>

/** Keywords whose values are data, in which `$ref` is a key like any other. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'example'])
/** Keywords whose keys are names of the application. */
const NAMES = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'])
const DEFINITION = /^#\/(?:\$defs|definitions)\/([^/]+)$/

export class Components {
  /** By name. */
  readonly schemas: Record<string, JsonSchema> = {}

  /** The schema with references into this table. @param title Of its root, if that has to be in the table. */
  embedded(given: JsonSchema, title: string): JsonSchema {
    const { $schema: _, $defs, definitions, ...root } = given
    const own = { ...(definitions as JsonSchema), ...($defs as JsonSchema) }
    const names = new Map(Object.keys(own).map((key) => [key, this.#freeName(key, own[key])]))
    const isRecursive = refersToRoot(root) || refersToRoot(own, true)
    const rootName = isRecursive ? this.#freeName(title, root) : ''
    const rename = (reference: string): string => {
      if (reference === '#') return `#/components/schemas/${rootName}`
      const [, key] = DEFINITION.exec(reference) ?? []
      const name = key === undefined ? undefined : names.get(unescaped(key))
      return name === undefined ? reference : `#/components/schemas/${name}`
    }
    for (const [key, name] of names) this.schemas[name] = renamed(own[key], rename) as JsonSchema
    const moved = renamed(root, rename) as JsonSchema
    if (!isRecursive) return moved
    this.schemas[rootName] = moved
    return { $ref: `#/components/schemas/${rootName}` }
  }

  /** The name of a definition; another one if a different definition has it. */
  #freeName(wished: string, definition: unknown): string {
    const first = wished.replace(/[^\w.-]+/g, '_').replace(/^_+|_+$/g, '') || 'Schema'
    const text = JSON.stringify(definition)
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? first : `${first}${number}`
      const before = this.#texts.get(name)
      if (before !== undefined && before !== text) continue
      this.#texts.set(name, text)
      return name
    }
  }

  /** What has each name, as it came. `Problem` is that of the package. */
  readonly #texts = new Map<string, string>([['Problem', '']])
}

/** A reference to a definition's name: JSON pointers in URI fragments are escaped twice. */
function unescaped(key: string): string {
  return decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
}

function refersToRoot(value: unknown, areNames = false): boolean {
  let isFound = false
  const look = (reference: string): string => {
    isFound ||= reference === '#'
    return reference
  }
  renamed(value, look, areNames)
  return isFound
}

/** A copy in which every reference is what `rename` makes of it. @param areNames Its keys are names. */
function renamed(value: unknown, rename: (reference: string) => string, areNames = false): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename))
  if (!isPlainObject(value)) return value
  const copy = (key: string, field: unknown): unknown => {
    if (areNames) return renamed(field, rename)
    if (key === '$ref' && typeof field === 'string') return rename(field)
    return DATA.has(key) ? field : renamed(field, rename, NAMES.has(key))
  }
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, copy(key, field)]))
}
