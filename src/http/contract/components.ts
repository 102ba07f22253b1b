/**
 * The table of schemas of an OpenAPI document, and JSON Schemas on their way into it.
 *
 * A schema that comes alone refers to its own root (`#`) and definitions (`#/$defs/User`). Within a document
 * these references would be read from the document's root, so definitions are moved to the components and
 * references follow. Definitions of one name that are equal, with all that they refer to, are one component.
 */
import { isPlainObject } from '../../base/index.ts'

type JsonSchema = Record<string, unknown>

/** Keywords whose values are data, in which `$ref` is a key like any other. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'example'])
/** Keywords whose keys are names of the application. */
const NAMES = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'])
const TO_ROOT = '"$ref":"#"'
const DEFINITION = /^#\/(?:\$defs|definitions)\/([^/]+)$/

export class Components {
  /** By name. */
  readonly schemas: Record<string, JsonSchema> = {}

  /**
   * The schema with references into this table.
   * @param title Of its root, if that has to be in the table.
   * @param suffix Of a definition whose name another one has.
   */
  embedded(given: JsonSchema, title: string, suffix = ''): JsonSchema {
    const { $schema: _, $defs, definitions, ...root } = given
    const own = { ...(definitions as JsonSchema), ...($defs as JsonSchema) }
    const textOf = (definition: unknown): string => {
      const text = closureOf(definition, own)
      return text.includes(TO_ROOT) ? text + JSON.stringify(root) : text
    }
    const names = new Map(Object.keys(own).map((key) => [key, this.#freeName(key, textOf(own[key]), suffix)]))
    const isRecursive = JSON.stringify(given).includes(TO_ROOT)
    const rootName = isRecursive ? this.#freeName(title, textOf(root)) : ''
    const rename = (reference: string): string => {
      if (reference === '#') return `#/components/schemas/${rootName}`
      const name = names.get(definitionName(reference) ?? '')
      return name === undefined ? reference : `#/components/schemas/${name}`
    }
    for (const [key, name] of names) this.schemas[name] = renamed(own[key], rename) as JsonSchema
    const moved = renamed(root, rename) as JsonSchema
    if (!isRecursive) return moved
    this.schemas[rootName] = moved
    return { $ref: `#/components/schemas/${rootName}` }
  }

  /** The name of a definition, by its text; another one if a different definition has it. */
  #freeName(wished: string, text: string, suffix = ''): string {
    const first = wished.replace(/[^\w.-]+/g, '_').replace(/^_+|_+$/g, '') || 'Schema'
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? first : `${first}${suffix}${number === 2 && suffix !== '' ? '' : number}`
      const before = this.#texts.get(name)
      if (before !== undefined && before !== text) continue
      this.#texts.set(name, text)
      return name
    }
  }

  /** What has each name, as it came. `Problem` is that of the package. */
  readonly #texts = new Map<string, string>([['Problem', '']])
}

/** The name in a reference to a definition: JSON pointers in URI fragments are escaped twice. */
function definitionName(reference: string): string | undefined {
  const [, key] = DEFINITION.exec(reference) ?? []
  if (key === undefined) return undefined
  let name = key
  try {
    name = decodeURIComponent(key)
  } catch {
    // of a library that does not escape the names
  }
  return name.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** What a reference in a schema that comes alone leads to. */
export function definitionOf(reference: string, whole: unknown): unknown {
  if (reference === '#' || !isPlainObject(whole)) return whole
  const own = { ...(whole['definitions'] as JsonSchema), ...(whole['$defs'] as JsonSchema) }
  return own[definitionName(reference) ?? '']
}

/** The text of a definition and of all that it refers to. */
function closureOf(definition: unknown, own: JsonSchema): string {
  const found = new Map<string, unknown>()
  const follow = (reference: string): string => {
    const name = definitionName(reference)
    if (name === undefined || found.has(name)) return reference
    found.set(name, own[name])
    renamed(own[name], follow)
    return reference
  }
  renamed(definition, follow)
  return JSON.stringify([definition, ...found])
}

/**
 * What a schema makes, as its input where nothing else differs: zod closes objects that it makes, since it
 * drops other keys, and a named schema would be two components.
 */
export function opened(made: JsonSchema, accepted: JsonSchema | undefined): JsonSchema {
  if (accepted === undefined) return made
  const [{ $defs = {}, ...root }, { $defs: others = {}, ...other }] = [made, accepted]
  const own = { ...($defs as JsonSchema) }
  for (const [key, definition] of Object.entries(others as JsonSchema))
    if (isOpenedBy(own[key], definition)) own[key] = definition
  return { ...(isOpenedBy(root, other) ? other : root), $defs: own }
}

function isOpenedBy(made: unknown, accepted: unknown): boolean {
  const open = (key: string, value: unknown): unknown =>
    key === 'additionalProperties' && value === false ? undefined : value
  return JSON.stringify(made, open) === JSON.stringify(accepted)
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
