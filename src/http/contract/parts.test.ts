/**
 * Which single value of a query is a list: by the JSON Schema, in whatever form a library writes it.
 *
 * Each schema has `tags` as its first name; `?tags=a` has to reach it as `['a']`, or as it is.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import * as Effect from 'effect/Schema'
import { z } from 'zod'
import { createApp, openApi, route, type Schema } from '../index.ts'

const list = z.array(z.string())
const ofEffect = <S extends Parameters<typeof Effect.toStandardSchemaV1>[0]>(schema: S) =>
  Effect.toStandardJSONSchemaV1(Effect.toStandardSchemaV1(schema))
class Query extends Effect.Class<Query>('Query')({ tags: Effect.Array(Effect.String) }) {}
/** A schema that accepts all, with that JSON Schema. */
function described(properties: object): Schema {
  const input = (): Record<string, unknown> => ({ type: 'object', properties })
  const validate = (value: unknown) => ({ value })
  return { '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input, output: input } } }
}
const info = { title: 'Tags', version: '1' }

const LISTS: Record<string, Schema> = {
  'an array': z.object({ tags: list }),
  'an array with a name that is no URI': z.object({ tags: list.meta({ id: '100%' }) }),
  'an array that is narrowed': described({
    tags: { type: 'array', allOf: [{ minItems: 1 }], anyOf: [{ maxItems: 2 }, { uniqueItems: true }] },
  }),
  'an array with a name': z.object({ tags: list.meta({ id: 'Tags' }) }),
  'an object with a name': z.object({ tags: list }).meta({ id: 'Query' }),
  'an array or null': z.object({ tags: list.nullish() }),
  'an array or null of arktype': type({ tags: 'string[]|null' }),
  'an intersection': z.object({ tags: list }).and(z.object({ more: z.string().optional() })),
  'a union of objects': z.union([z.object({ other: z.string() }), z.object({ tags: list })]),
  'a class of Effect': ofEffect(Query),
  'an array or null of Effect': ofEffect(Effect.Struct({ tags: Effect.NullOr(Effect.Array(Effect.String)) })),
}
const VALUES: Record<string, Schema> = {
  'a string': z.object({ tags: z.string() }),
  'a string or an array': z.object({ tags: z.union([z.string(), list]) }),
  'a constant or an array of arktype': type({ tags: "'a'|string[]" }),
  'an array in one of two objects': z.union([
    z.object({ tags: z.string() }),
    z.object({ tags: list, more: z.string() }),
  ]),
}

for (const [expected, schemas] of [
  [['a'], LISTS],
  ['a', VALUES],
] as const)
  for (const [name, query] of Object.entries(schemas))
    test(`tags=a of ${name} is ${JSON.stringify(expected)}`, async () => {
      const app = createApp({ routes: { '/': route({ query }, ({ query }) => Response.json(query)) } })
      const response = await app.inject('/?tags=a')
      assert.deepEqual(await response.json(), { tags: expected })
    })

test('an object with a name has its own parameters in the document', () => {
  for (const name of ['an object with a name', 'a class of Effect']) {
    const { paths } = openApi({ '/': route({ query: LISTS[name] }, () => 'ok') }, { info }) as unknown as {
      paths: Record<string, { get: { parameters: { name: string; required: boolean }[] } }>
    }
    const parameters = paths['/'].get.parameters.map(({ name, required }) => [name, required])
    assert.deepEqual(parameters, [['tags', true]], name)
  }
})
