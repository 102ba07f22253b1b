/**
 * What generated code accepts is what zod returns unchanged; everything else is zod's.
 *
 * The oracle is the schema itself, for schemas and values made at random; then what is not covered.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as v from 'valibot'
import { z } from 'zod'
import { accepting, converting } from './accepts.ts'
import type { Schema } from './schema.ts'

type Made = readonly [schema: z.ZodType, value: fc.Arbitrary<unknown>]

const word = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('a@b.cd', 'é', '👍👍', 'x\ud800', ''))
const number = fc.oneof(fc.integer({ min: -20, max: 20 }), fc.double(), fc.constantFrom(2 ** 53, 1e300, 0.3))

/** Kinds of fields, each with values of which many fit. */
const leaf = fc.constantFrom<Made>(
  [z.string(), word],
  [z.string().min(2).max(4), word],
  [z.string().length(2), word],
  [z.string().regex(/^a/g).startsWith('a').endsWith('d'), fc.oneof(word, fc.constantFrom('ad', 'abcd'))],
  [z.email(), word],
  [z.uuid(), fc.oneof(fc.uuid(), word)],
  [z.iso.datetime(), fc.constantFrom('2026-11-30T09:00:00Z', '2026-11-30')],
  [z.url({ normalize: true }), fc.constantFrom('https://a.example', ' https://a.example/ ', 'a')],
  [z.string().trim().min(1), fc.constantFrom(' a', 'a', ' ')],
  [z.number().gt(-5).lte(10), number],
  [z.number().multipleOf(0.1), number],
  [z.int().nonnegative(), number],
  [z.int32(), number],
  [z.coerce.number(), fc.oneof(number, fc.constant('7'))],
  [z.boolean(), fc.boolean()],
  [z.null(), fc.constant(null)],
  [z.enum(['a', 'b']), fc.constantFrom('a', 'b', 'c')],
  [z.literal([1, 'x', null]), fc.constantFrom(1, 'x', null, '1')],
  [z.literal(undefined), fc.constant(null)],
  [z.string().default('d'), word],
  [z.string().refine((text) => text !== 'a'), word],
  [z.any(), fc.jsonValue()],
  [z.union([z.string(), z.number()]), fc.oneof(word, number)],
)

const { made } = fc.letrec<{ made: Made }>((tie) => ({
  made: fc.oneof(
    { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
    leaf,
    tie('made').map(([schema, value]): Made => [schema.nullable(), fc.oneof(value, fc.constant(null))]),
    tie('made').map(([schema, value]): Made => [
      z.array(schema).min(1).max(3),
      fc.array(value, { maxLength: 4 }),
    ]),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom('a', 'b', 'toString', 'c d', "'"), tie('made'), { maxKeys: 4 }),
        fc.constantFrom('strip', 'optional', 'strict', 'loose'),
      )
      .map(([fields, how]): Made => {
        const entries = Object.entries(fields)
        const shape = Object.fromEntries(
          entries.map(([key, [schema]]) => [key, how === 'optional' ? schema.optional() : schema]),
        )
        const values = Object.fromEntries(entries.map(([key, [, value]]) => [key, value]))
        const schema = how === 'strict' ? z.strictObject(shape) : z.object(shape)
        const more = fc.dictionary(fc.constantFrom('more', '__proto__', 'a'), fc.constant(1), { maxKeys: 1 })
        return [
          how === 'loose' ? schema.loose() : schema,
          fc
            .tuple(
              fc.record(values, how === 'optional' ? { requiredKeys: [] } : {}),
              fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: more }),
            )
            .map(([known, other]) => ({ ...known, ...other })),
        ]
      }),
  ),
}))

const resultOf = (schema: Schema, value: unknown): unknown => schema['~standard'].validate(value)

test('what it returns is what zod returns, for any schema and value', () => {
  let [same, all] = [0, 0]
  const schemaAndValue = made.chain(([schema, value]) =>
    fc.tuple(
      fc.constant(schema),
      fc.oneof({ weight: 6, arbitrary: value }, { weight: 1, arbitrary: fc.jsonValue() }),
    ),
  )
  fc.assert(
    fc.property(schemaAndValue, ([schema, made]) => {
      const value: unknown = JSON.parse(JSON.stringify(made ?? null))
      const wrapped = accepting(schema)
      const expected = resultOf(schema, value)
      for (let turn = 0; turn < 2; turn += 1) assert.deepEqual(resultOf(wrapped, value), expected)
      const result = resultOf(wrapped, value) as { value?: unknown }
      all += 1
      if (typeof value === 'object' && value !== null && result.value === value) same += 1
    }),
    { numRuns: 3000 },
  )
  assert.ok(same > all / 20, `${same} of ${all} objects were returned as they are`)
})

/** Fields of a query, with what zod makes of the strings. */
const stringField = fc.constantFrom<z.ZodType>(
  z.string(),
  z.string().min(2).optional(),
  z.string().default('d'),
  z.coerce.number(),
  z.coerce.number().int().min(1).default(20),
  z.coerce.number().max(9).optional(),
  z.coerce.boolean(),
  z.coerce.boolean().optional(),
  z.coerce.string(),
  z.coerce.bigint(),
  z.enum(['a', '7']).optional(),
  z.uuid(),
  z.array(z.string()).optional(),
  z.string().optional().default('d'),
  z.string().default('d').optional(),
  z.string().default(() => 'made'),
  z
    .string()
    .optional()
    .refine((text) => text !== 'a'),
  z.string().transform((text) => text.length),
)
const text = fc.oneof(fc.constantFrom('', 'a', '7', '1e3', '-1', 'x7', ' 3 ', 'true'), fc.uuid())

test('what it makes of strings is what zod makes of them', () => {
  const keys = fc.constantFrom('a', 'b', 'toString', 'c d')
  const sent = fc.dictionary(fc.oneof(keys, fc.constant('more')), fc.oneof(text, fc.array(text)))
  let made = 0
  fc.assert(
    fc.property(fc.dictionary(keys, stringField, { maxKeys: 3 }), sent, (shape, values) => {
      const schema = z.object(shape)
      const record = Object.assign(Object.create(null), values) as unknown
      const expected = resultOf(schema, record) as { value?: object }
      const result = resultOf(converting(schema), record) as { value?: object }
      assert.deepEqual(result, expected)
      assert.deepEqual(Object.keys(result.value ?? {}), Object.keys(expected.value ?? {}))
      if (result.value !== undefined) made += 1
    }),
    { numRuns: 2000 },
  )
  assert.ok(made > 100, `${made} records fit`)
})

test('zod makes what is not a plain object of strings, and a default is made once', () => {
  for (const schema of [
    z.looseObject({ a: z.string() }),
    z.strictObject({ a: z.string() }),
    z.object({ a: z.string() }).refine(({ a }) => a !== 'x'),
    z.record(z.string(), z.string()),
  ])
    for (const record of [{ a: 'x', b: 'y' }, { a: 'y' }, {}])
      assert.deepEqual(resultOf(converting(schema), record), resultOf(schema, record))
  let calls = 0
  const counted = z.object({ a: z.coerce.number().default(() => ++calls), b: z.coerce.number() })
  assert.deepEqual(resultOf(converting(counted), { b: '2' }), { value: { a: 1, b: 2 } })
  assert.equal(calls, 1)
})

test('an object that fits is returned itself, and a check of a program runs once', () => {
  const covered = z.object({ id: z.int(), tags: z.array(z.string().max(3)).optional() })
  const value = { id: 1, tags: ['a'] }
  assert.equal((resultOf(accepting(covered), value) as { value: unknown }).value, value)
  let calls = 0
  const counted = covered.refine(() => ++calls > 0)
  const copied = resultOf(accepting(counted), value) as { value: unknown }
  assert.notEqual(copied.value, value)
  assert.equal(calls, 1)
  const own = z.stringFormat('own', () => ++calls > 0)
  resultOf(accepting(own), 'a')
  assert.equal(calls, 2)
})

test('a schema of another library, or one that contains itself, is used as it is', () => {
  const other = v.object({ a: v.string() })
  assert.equal(accepting(other)['~standard'], other['~standard'])
  const Tree: z.ZodType = z.object({
    get items() {
      return z.array(Tree)
    },
  })
  assert.deepEqual(resultOf(accepting(Tree), { items: [{ items: [], more: 1 }] }), {
    value: { items: [{ items: [] }] },
  })
})

test('what zod throws or awaits is not hidden', async () => {
  const broken = accepting(z.object({ a: z.string().check(z.multipleOf(2) as never) }))
  await assert.rejects(async () => resultOf(broken, { a: 'x' }), /multiple_of/)
  const later = accepting(z.string().refine(async (text) => Promise.resolve(text === 'a')))
  assert.deepEqual(await resultOf(later, 'a'), { value: 'a' })
})

test('zod decides keys that are symbols, what is absent, and a schema that grows at each level', () => {
  const symbol = Symbol('s')
  const keyed = z.object({ a: z.string(), [symbol]: z.string() })
  assert.deepEqual(resultOf(accepting(keyed), { a: 'x' }), resultOf(keyed, { a: 'x' }))
  const exact = z.object({ a: z.string() }).exactOptional()
  assert.deepEqual(resultOf(accepting(exact), undefined), resultOf(exact, undefined))
  let doubled: z.ZodType = z.object({ a: z.string() })
  for (let level = 0; level < 14; level += 1)
    doubled = z.object({ l: doubled.optional(), r: doubled.optional() })
  assert.deepEqual(resultOf(accepting(doubled), { l: {} }), { value: { l: {} } })
})
