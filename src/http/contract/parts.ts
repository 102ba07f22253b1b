/**
 * The parts of a request as the plain values that schemas check: strings by name.
 *
 * Records have no prototype, since clients choose the names. Nothing is converted: whether `limit=7` is a
 * number is a matter of the schema. Only a list that has one value is still a list, by its JSON Schema.
 */
import { isPlainObject } from '../../base/index.ts'
import type { HttpRequest } from '../app/routes.ts'
import { queryNow } from '../fetch/request.ts'
import { queryPairs } from '../message/target.ts'
import { definitionOf } from './components.ts'
import { inputSchemaOf, type Schema } from './schema.ts'

/** Reads a part of a request. */
export type ReadPart = (request: HttpRequest) => unknown

/** The reader of the query, for this schema. */
export function queryReader(schema: Schema): ReadPart {
  let lists: ReadonlySet<string> | undefined
  return (request) => {
    const query = record()
    const pairs = queryNow(request) ?? queryPairs(request.url)
    for (let at = 0; at < pairs.length; at += 2) {
      const [name, value] = [pairs[at], pairs[at + 1]]
      lists ??= listsOf(schema)
      const before = query[name]
      if (before === undefined) query[name] = lists.has(name) ? [value] : value
      else if (Array.isArray(before)) before.push(value)
      else query[name] = [before, value]
    }
    return query
  }
}

export function readHeaders({ headers }: HttpRequest): unknown {
  const all = record()
  headers.forEach((value, name) => (all[name] = value))
  return all
}

/** As RFC 6265, 5.4 has them; the first of two with one name. */
export function readCookies({ headers }: HttpRequest): unknown {
  const cookies = record()
  for (const pair of headers.get('cookie')?.split(';') ?? []) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, at).trim()
    if (at > 0 && cookies[name] === undefined) cookies[name] = cookieValue(pair.slice(at + 1).trim())
  }
  return cookies
}

function cookieValue(text: string): string {
  const value = text.startsWith('"') && text.endsWith('"') && text.length > 1 ? text.slice(1, -1) : text
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value // of somebody who does not encode
  }
}

/** Names whose schema is an array, or null; in a union of objects, wherever the name occurs. */
function listsOf(schema: Schema): ReadonlySet<string> {
  const whole = inputSchemaOf(schema)
  const lists = new Map<string, boolean>()
  for (const { properties } of alternatives(whole, whole))
    for (const [name, value] of Object.entries((properties ?? {}) as Record<string, unknown>)) {
      const types = alternatives(value, whole).flatMap(({ type }) => (type ?? 'any') as string | string[])
      const isList = types.includes('array') && types.every((type) => type === 'array' || type === 'null')
      lists.set(name, isList && lists.get(name) !== false)
    }
  return new Set([...lists.keys()].filter((name) => lists.get(name)))
}

/** The schemas of which one consists: references followed, each once, and combined ones taken apart. */
function alternatives(value: unknown, whole: unknown, seen = new Set<unknown>()): Record<string, unknown>[] {
  if (!isPlainObject(value) || seen.has(value)) return []
  seen.add(value)
  const { $ref, anyOf, oneOf, allOf, ...own } = value
  const parts: unknown[] = [anyOf, oneOf, allOf].flatMap((some) => some ?? [])
  if ($ref !== undefined) parts.push(definitionOf(String($ref), whole))
  const nested = parts.flatMap((part) => alternatives(part, whole, seen))
  // Of what has a type, parts only narrow it, or have more properties.
  if (own['type'] !== undefined) return [own, ...nested.filter((part) => 'properties' in part)]
  return parts.length === 0 || 'properties' in own ? [own, ...nested] : nested
}

function record(): Record<string, string | string[]> {
  return Object.create(null) as Record<string, string | string[]>
}

const JSON_TYPE = /^application\/(?:[\w!#$&.^-]+\+)?json *(?:;|$)/i

/** Whether a content type is JSON (RFC 8259) or based on it (RFC 6839, 3.1). */
export function isJsonType(type: string): boolean {
  return type === 'application/json' || JSON_TYPE.test(type)
}
