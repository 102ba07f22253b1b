/**
 * The types of contracts and of the client: compiling this file is the test.
 *
 * A line under `@ts-expect-error` that compiles fails the build. One test runs; all else is only compiled.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { client } from './client.ts'
import { createApp, type Problem, requestId, route, use } from './http/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<_Yes extends true>(): void {}

const User = z.object({ id: z.string(), age: z.number() })
const routes = {
  '/users/:id': {
    GET: route(
      {
        params: z.object({ id: z.coerce.number() }),
        query: v.object({ full: v.optional(v.string()) }),
        headers: type({ 'x-tenant': 'string' }),
        responses: { 200: User, 404: type({ reason: 'string' }), 204: null },
      },
      ({ params, query, headers, cookies, body, respond }) => {
        is<Same<typeof params, { id: number }>>()
        is<Same<typeof query, { full?: string | undefined }>>()
        is<Same<typeof headers, { 'x-tenant': string }>>()
        is<Same<typeof cookies, undefined>>()
        is<Same<typeof body, undefined>>()
        // @ts-expect-error the status is not declared
        respond(500, {})
        // @ts-expect-error the body of this status is another one
        respond(404, { id: '7', age: 1 })
        if (params.id === 0) return respond(404, { reason: 'none' })
        return params.id === 1 ? respond(204, null) : { id: '7', age: 1 }
      },
    ),
    PUT: route({ body: User.partial() }, ({ body, params }) => {
      is<Same<typeof body, { id?: string | undefined; age?: number | undefined }>>()
      return { sent: params['id'] ?? null }
    }),
  },
  '/plain': { GET: () => 'plain' },
  '/any': (request: Request) => request.url,
}

/** Compiled, never called. */
export async function calls(): Promise<void> {
  // @ts-expect-error the body is not that of 200
  route({ responses: { 200: User } }, () => ({ id: 7, age: 1 }))
  // @ts-expect-error no status is successful, so none is implied
  route({ responses: { 404: User } }, () => ({ id: '7', age: 1 }))
  // @ts-expect-error not a schema
  route({ body: { type: 'string' } }, () => 'x')
  // Within createApp and use, params have the names of the pattern.
  createApp({
    routes: {
      '/a/:one/:two': {
        GET: route({}, ({ params }) => (is<Same<keyof typeof params, 'one' | 'two'>>(), 'x')),
      },
      '/b/:three': route({}, ({ params }) => (is<Same<keyof typeof params, 'three'>>(), 'x')),
    },
  })
  const call = client<typeof routes>('http://localhost')
  const found = await call('GET', '/users/:id', { params: { id: 7 } })
  if (found.status === 200) is<Same<typeof found.body, { id: string; age: number }>>()
  if (found.status === 404) is<Same<typeof found.body, { reason: string }>>()
  if (found.status === 422) is<Same<typeof found.body, Problem>>()
  if (found.status === 503) is<Same<typeof found.body, unknown>>()
  const put = await call('PUT', '/users/:id', { params: { id: '7' }, body: { age: 1 } })
  is<Same<typeof put.body, unknown>>()
  await call('GET', '/plain')
  await call('DELETE', '/any')
  // @ts-expect-error the parameter is missing
  await call('GET', '/users/:id')
  // @ts-expect-error another method
  await call('POST', '/users/:id', { params: { id: '7' } })
  // @ts-expect-error another path
  await call('GET', '/users')
  // @ts-expect-error another type of a field
  await call('PUT', '/users/:id', { params: { id: '7' }, body: { age: 'old' } })
  const module = client<{ readonly routes: typeof routes; readonly error: () => void }>('http://localhost')
  is<Same<typeof module, typeof call>>()
  use(routes, requestId())
}

test('types are compiled', () => assert.ok(calls))
