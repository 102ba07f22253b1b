/**
 * Large bodies: parsed and checked on a zone.
 *
 * A schema is made of functions, which cannot travel to another thread. So the zone's module has the schema
 * itself, and exports what {@link jsonReader} makes of it: a named function, which travels as its name.
 */
import { messageOf } from '../../base/index.ts'
import { decodeUtf8 } from '../message/text.ts'
import { plainIssues } from './faults.ts'
import { type Schema, type SchemaIssue, type SchemaOutput, validated } from './schema.ts'

/** What a {@link jsonReader} makes of a body. */
export type JsonRead<Value = unknown> =
  | { readonly value: Value }
  | { readonly issues: readonly SchemaIssue[]; readonly leftOut: number }
  | { readonly malformed: string }

/** Where large bodies are parsed and checked. */
export interface LargeBody {
  /** Bodies of so many bytes are read by `read`, smaller ones here. */
  readonly bytesMin: number
  /** Calls the function that {@link jsonReader} made, in a zone: `(bytes) => work.readOrder(bytes)`. */
  readonly read: (bytes: Uint8Array) => Promise<JsonRead>
}

/**
 * A function that parses JSON and checks it, for the module of a zone; see `large` of a {@link Contract}.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { jsonReader } from 'corespun/http'
 * import { z } from 'zod'
 *
 * const readOrder = jsonReader(z.object({ id: z.int() }))
 * assert.deepEqual(await readOrder(Buffer.from('{"id": 7, "more": true}')), { value: { id: 7 } })
 * ```
 */
export function jsonReader<S extends Schema>(
  schema: S,
): (bytes: Uint8Array) => Promise<JsonRead<SchemaOutput<S>>> {
  return async (bytes) => {
    const parsed = jsonIn(bytes)
    if ('malformed' in parsed) return parsed
    const result = await validated(schema, parsed.value)
    return result.issues === undefined
      ? { value: result.value as SchemaOutput<S> }
      : plainIssues(result.issues)
  }
}

/** The value of JSON text; `undefined` for none. */
export function jsonIn(body: Uint8Array | string): { value: unknown } | { malformed: string } {
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  if (text === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { malformed: `not JSON: ${messageOf(error)}` }
  }
}
