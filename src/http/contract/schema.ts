/**
 * Schemas of any library, by the interface that they share: Standard Schema (standardschema.dev).
 *
 * The types are Corespun's own, so that its declarations need no package. A schema is asked two questions
 * only: whether a value fits, and what its JSON Schema is; nothing here depends on a library.
 */

/** One reason why a value does not fit, as a schema states it. */
export interface SchemaIssue {
  /** For people. */
  readonly message: string
  /** Keys that lead to the part, from the outside. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a schema makes of a value: another one, or issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** Makes JSON Schema of a schema; throws for what JSON Schema cannot express. */
export interface SchemaConverter {
  /** The schema of what is accepted. */
  input(options: { readonly target: string }): Record<string, unknown>
  /** The schema of what is made of it. */
  output(options: { readonly target: string }): Record<string, unknown>
}

/**
 * A schema of zod, valibot, arktype or any other library with the Standard Schema interface. `openApi` also
 * needs its part for JSON Schema: zod from 4.2 on, arktype from 2.1.28 on; `toStandardJsonSchema` of
 * `@valibot/to-json-schema` adds it to a schema of valibot, `toStandardJSONSchemaV1` to one of Effect that
 * `toStandardSchemaV1` has made.
 */
export interface Schema<Input = unknown, Output = Input> {
  /** As `StandardSchemaV1` has it. */
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: SchemaConverter
  }
}

/** What a schema accepts. */
export type SchemaInput<S extends Schema> = NonNullable<S['~standard']['types']>['input']

/** What a schema makes of it. */
export type SchemaOutput<S extends Schema> = NonNullable<S['~standard']['types']>['output']

/** Whether a value has the interface; those of arktype are functions. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<Schema>)['~standard']
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function'
}

const NESTED_TOO_DEEPLY = { issues: [{ message: 'nested too deeply' }] }

/** What the schema makes of a value. A value too deep for a recursive schema does not fit. */
export function validated(
  schema: Schema,
  value: unknown,
): SchemaResult<unknown> | Promise<SchemaResult<unknown>> {
  try {
    const result = schema['~standard'].validate(value)
    // zod tries again asynchronously whatever was thrown.
    return result instanceof Promise ? result.catch(tooDeep) : result
  } catch (error) {
    return tooDeep(error)
  }
}

/** @throws Any other error. */
function tooDeep(error: unknown): SchemaResult<unknown> {
  if (error instanceof RangeError && error.message.includes('call stack')) return NESTED_TOO_DEEPLY
  throw error
}

/** The JSON Schema of what a schema accepts; `undefined` without one. */
export function inputSchemaOf(schema: Schema): Record<string, unknown> | undefined {
  try {
    return schema['~standard'].jsonSchema?.input({ target: JSON_SCHEMA })
  } catch {
    return undefined // it cannot be expressed; only `openApi` depends on that, and reports it
  }
}

/** The version of JSON Schema that OpenAPI 3.1 includes. */
export const JSON_SCHEMA = 'draft-2020-12'
