/**
 * What generators of clients make of an OpenAPI document: it compiles, and calls the routes as they are.
 *
 * The document has what generators treat in their own ways: parameters in all four parts, lists, null,
 * unions, recursion, schemas of four libraries. openapi-typescript, openapi-fetch and orval are installed in
 * .set-up/ from a lock file of their own (test/http/generators), since the first needs TypeScript 5. That
 * takes half a minute, once.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { openApi, route, serve } from 'corespun/http'
import * as Effect from 'effect/Schema'
import * as v from 'valibot'
import { z } from 'zod'
import { inRoot, installCopy, MEMORY, tsc } from '../../scripts/set-up/index.mjs'

const TOOLS = join(MEMORY, 'openapi-generators')

const Part = z
  .object({
    name: z.string(),
    get parts() {
      return z.array(Part)
    },
  })
  .meta({ id: 'Part' })
const Event = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('made'), at: z.iso.datetime() }),
  z.object({ kind: z.literal('sold'), count: z.int() }),
])
const Item = z
  .object({
    id: z.int(),
    name: z.string(),
    note: z.string().nullable(),
    labels: z.record(z.string(), z.string()),
    state: z.enum(['new', 'old']),
    part: Part.optional(),
    events: z.array(Event),
  })
  .meta({ id: 'Item' })
const Reason = type({ reason: 'string' })
const Order = Effect.toStandardJSONSchemaV1(
  Effect.toStandardSchemaV1(Effect.Struct({ sku: Effect.NonEmptyString, count: Effect.Int })),
)
const items = new Map()
const params = z.object({ id: z.coerce.number().int() })
const routes = {
  '/items/:id': {
    GET: route(
      {
        params,
        query: z.object({ tag: z.array(z.string()).optional(), limit: z.coerce.number().default(20) }),
        headers: z.object({ 'x-tenant': z.string() }),
        cookies: toStandardJsonSchema(v.object({ theme: v.optional(v.string()) })),
        responses: { 200: Item, 404: Reason },
      },
      ({ params: { id }, query, headers, respond }) => {
        const item = items.get(id)
        if (item === undefined) return respond(404, { reason: `no item ${id}` })
        return { ...item, labels: { tags: String(query.tag), limit: `${query.limit}`, ...headers } }
      },
    ),
    PUT: route({ params, body: Item, responses: { 204: null } }, ({ params: { id }, body }) => {
      items.set(id, body)
    }),
  },
  '/orders': { POST: route({ body: Order, responses: { 201: Order } }, ({ body }) => body) },
}

/** Typed by what was generated: a name, status or type that differs does not compile. */
const program = (url) => `
import createClient from 'openapi-fetch'
import { getItemsById, postOrders } from './orval.js'
import type { components, paths } from './schema.d.ts'

const parts = [{ name: 'lid', parts: [] }]
const item: components['schemas']['Item'] = {
  id: 7, name: 'box', note: null, labels: {}, state: 'new', part: { name: 'box', parts },
  events: [{ kind: 'sold', count: 2 }],
}
const { GET, PUT } = createClient<paths>({ baseUrl: '${url}' })
const path = { id: 7 }
const header = { 'x-tenant': 'ada' }
const missing = await GET('/items/{id}', { params: { path, header } })
const { error } = missing
const reason: string | undefined = error && 'reason' in error ? error.reason : undefined
const put = await PUT('/items/{id}', { params: { path }, body: item })
// @ts-expect-error -- the state is one of two
const wrong = await PUT('/items/{id}', { params: { path }, body: { ...item, state: 'lost' } })
const problem = wrong.error && wrong.error.errors.map(({ where, path }) => [where, ...path].join('.'))
const got = await GET('/items/{id}', { params: { path, header, query: { tag: ['a', 'b'] } } })
const label: string | undefined = got.data?.labels['tags']
const found = await getItemsById(7, { tag: ['c'], limit: 3 }, { headers: header })
const byOrval = found.status === 200 ? found.data.part?.parts[0]?.name : undefined
const ordered = await postOrders({ sku: 'tea', count: 2 })
export const results = [
  missing.response.status, reason, put.response.status, wrong.response.status, problem, label, byOrval,
  ordered.status === 201 ? ordered.data.count : undefined,
]
`

let folder
before(async () => {
  await installCopy('generators of clients', inRoot('test', 'http', 'generators'), TOOLS)
  folder = mkdtempSync(join(TOOLS, 'made-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

function run(...args) {
  const env = { ...process.env, TMPDIR: folder } // orval leaves a cache there
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
}

test('clients by openapi-fetch and orval compile and call the routes', async () => {
  const document = openApi(routes, { info: { title: 'Items', version: '1' } })
  const server = await serve({ quiet: true, port: 0, routes })
  try {
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
    const output = { target: './orval.ts', client: 'fetch', baseUrl: server.url }
    const config = { items: { input: './openapi.json', output } }
    writeFileSync(join(folder, 'orval.config.mjs'), `export default ${JSON.stringify(config)}`)
    writeFileSync(join(folder, 'program.ts'), program(server.url))
    const tool = (...path) => join(TOOLS, 'node_modules', ...path)
    run(tool('openapi-typescript', 'bin', 'cli.js'), 'openapi.json', '--output', 'schema.d.ts')
    run(tool('orval', 'dist', 'bin', 'orval.mjs'), '--config', 'orval.config.mjs')
    const language = [
      '--strict',
      '--target',
      'es2022',
      '--module',
      'nodenext',
      '--lib',
      'es2023,dom,dom.iterable',
    ]
    run(tsc(), ...language, '--skipLibCheck', '--ignoreConfig', '--pretty', 'false', 'program.ts')
    const { results } = await import(pathToFileURL(join(folder, 'program.js')))
    const problem = ['body.state']
    assert.deepEqual(results, [404, 'no item 7', 204, 422, problem, 'a,b', 'lid', 2])
  } finally {
    await server.close()
  }
})
