/**
 * Random requests against routes with contracts: a response of the declared shape, or 4xx; never 5xx.
 *
 * Requests are near a valid one: some values replaced, dropped, repeated or nested, so that many pass. The
 * oracle of a body that is accepted is the schema itself. fast-check prints the seed of a failure.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import { z } from 'zod'
import { createApp, type Problem, route } from '../index.ts'
import type { Schema } from '../index.ts'

interface Tree {
  readonly name: string
  readonly of?: readonly Tree[] | undefined
}
const ZodTree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), of: z.array(ZodTree).optional() }))
const ValibotTree: v.GenericSchema<Tree> = v.object({
  name: v.string(),
  of: v.optional(v.array(v.lazy(() => ValibotTree))),
})
const ArkTree = type({ name: 'string', 'of?': 'unknown[]' })

const BODIES: Record<string, Schema> = {
  'zod, a tree': ZodTree,
  'valibot, a tree': ValibotTree,
  'arktype, an object': ArkTree,
  'zod, a union': z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('a'), count: z.int().min(0) }),
    z.strictObject({ kind: z.literal('b'), tags: z.record(z.string(), z.string()) }),
  ]),
  'valibot, a tuple': v.tuple([v.string(), v.number(), v.optional(v.boolean())]),
  'arktype, a union': type({ kind: "'a'", count: 'number.integer >= 0' }).or({ kind: "'b'", tags: 'object' }),
}

const keys = fc.constantFrom(
  'name',
  'of',
  'kind',
  'count',
  'tags',
  '__proto__',
  'constructor',
  'toString',
  '',
  '0',
)
const texts = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('a', 'b', '__proto__', '\0', '💥'))
const values = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.oneof(texts, fc.integer(), fc.double(), fc.boolean(), fc.constant(null)),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.array(fc.tuple(keys, tie('any')), { maxLength: 5 }).map((pairs) => Object.fromEntries(pairs)),
    fc.record({ name: texts, of: fc.array(tie('any'), { maxLength: 3 }) }, { requiredKeys: ['name'] }),
    fc.record({ kind: fc.constantFrom('a', 'b'), count: fc.nat(), tags: fc.dictionary(texts, texts) }),
    fc.tuple(texts, fc.integer()),
  ),
})).any
/** JSON, or nearly. */
const bodies = fc
  .tuple(values, fc.option(fc.tuple(fc.nat(200), texts), { freq: 6 }))
  .map(([value, damage]) => {
    const text = JSON.stringify(value)
    return damage === null ? text : text.slice(0, damage[0]) + damage[1] + text.slice(damage[0])
  })
const types = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  fc.constantFrom(
    'text/plain',
    'application/json;charset=utf-16',
    'application/x+json',
    '',
    'multipart/form-data',
  ),
)
const queries = fc.array(fc.tuple(fc.constantFrom('limit', 'tag', 'x', '__proto__', ''), texts), {
  maxLength: 5,
})

for (const [name, body] of Object.entries(BODIES)) {
  test(`requests for ${name}`, async () => {
    const failed: unknown[] = []
    const query = z.object({
      limit: z.coerce.number().max(10).optional(),
      tag: z.array(z.string()).optional(),
    })
    const echo = route(
      { query, body, responses: { 200: z.object({ sent: z.any() }) } },
      ({ body: sent }) => ({ sent: sent ?? null }),
    )
    const app = createApp({ routes: { '/': { POST: echo } }, error: (error) => void failed.push(error) })
    const statuses = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(bodies, types, queries, async (text, contentType, pairs) => {
        const received = Buffer.from(text).toString() // half of a pair of surrogates is replaced
        const search = new URLSearchParams(pairs).toString()
        const headers = contentType === '' ? undefined : { 'content-type': contentType }
        const init = {
          method: 'POST',
          body: Buffer.from(text),
          ...(headers === undefined ? {} : { headers }),
        }
        const response = await app.inject(`/?${search}`, init)
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        assert.deepEqual(failed, [])
        const got = (await response.json()) as Problem & { sent: unknown }
        if (response.status === 200) {
          const checked = await body['~standard'].validate(JSON.parse(received))
          assert.ok(checked.issues === undefined)
          assert.deepEqual(got.sent, JSON.parse(JSON.stringify(checked.value ?? null)))
        } else {
          assert.ok([400, 415, 422].includes(response.status), `${response.status}`)
          assert.equal(got.status, response.status)
          assert.ok(got.errors.length > 0 && got.errors.length <= 100)
        }
      }),
      { seed: 48, numRuns: 400 },
    )
    for (const status of [200, 400, 415, 422]) assert.ok(statuses.has(status), `no response is ${status}`)
  })
}

/** Parts of a request that are texts: a number in the path, a number and a list, a header, a cookie. */
const PARTS: Record<string, Readonly<Record<'params' | 'query' | 'headers' | 'cookies', Schema>>> = {
  zod: {
    params: z.object({ id: z.coerce.number().int() }),
    query: z.object({ limit: z.coerce.number().max(9).optional(), tag: z.array(z.string()).optional() }),
    headers: z.object({ 'x-a': z.string().regex(/^\w*$/).optional() }),
    cookies: z.object({ theme: z.enum(['a', '7']).optional() }),
  },
  valibot: {
    params: v.object({ id: v.pipe(v.string(), v.toNumber(), v.integer()) }),
    query: v.object({
      limit: v.optional(v.pipe(v.string(), v.toNumber(), v.maxValue(9))),
      tag: v.optional(v.array(v.string())),
    }),
    headers: v.object({ 'x-a': v.optional(v.pipe(v.string(), v.regex(/^\w*$/))) }),
    cookies: v.object({ theme: v.optional(v.picklist(['a', '7'])) }),
  },
  arktype: {
    params: type({ id: 'string.integer.parse' }),
    query: type({ 'limit?': 'string.numeric.parse', 'tag?': 'string[]' }),
    headers: type({ 'x-a?': /^\w*$/ }),
    cookies: type({ 'theme?': "'a'|'7'" }),
  },
}
const words = fc.oneof(
  { weight: 3, arbitrary: fc.nat(9).map(String) },
  fc.constantFrom('', '%2F', '%00', '__proto__', 'constructor', 'a"b', ' ', '1e999', '0x10', '..', ';', '='),
  texts.map((text) => encodeURIComponent(text)),
)
const fields = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', '7') },
  fc.string({ unit: fc.constantFrom('a', '7', '_', '-', ';', '=', '"', ' ') }),
)

for (const [library, contract] of Object.entries(PARTS)) {
  test(`requests whose path, query, headers and cookies are checked by ${library}`, async () => {
    const failed: unknown[] = []
    const echo = route(contract, ({ params, query }) => ({ params, query }))
    const app = createApp({ routes: { '/of/:id': echo }, error: (error) => void failed.push(error) })
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(words, queries, words, fields, fields, async (id, pairs, limit, header, theme) => {
        const search = new URLSearchParams([...pairs, ['limit', limit]]).toString()
        const init = { headers: { 'x-a': header, cookie: `theme=${theme}` } }
        const { status } = await app.inject(`/of/${id}?${search}`, init)
        statuses.add(status)
        assert.deepEqual(failed, [])
        assert.ok([200, 400, 404, 422].includes(status), `${status}`)
      }),
      { seed: 48, numRuns: 400 },
    )
    for (const status of [200, 422]) assert.ok(statuses.has(status), `no response is ${status}`)
  })
}
