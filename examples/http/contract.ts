/**
 * A small API from contracts: validation, OpenAPI with its page, a typed client.
 *
 * `corespun serve examples/http/contract.ts` serves it on all cores, with the page at /docs/. Run by itself,
 * it calls itself through the client and prints one line.
 */
import assert from 'node:assert/strict'
import { isMainThread } from 'node:worker_threads'
import { client } from 'corespun/client'
import { createApp, jsonErrors, openApi, openApiPage, requestId, route, use } from 'corespun/http'
import { store } from 'corespun/store'
import { z } from 'zod'

const Book = z.object({ title: z.string().min(1), year: z.int() }).meta({ id: 'Book' })
const Missing = z.object({ reason: z.string() })
const Isbn = z.object({ isbn: z.string().regex(/^\d{13}$/) })
const books = store.getOrCreate<z.infer<typeof Book>>('books', { entriesMax: 1000 })

const api = {
  '/books/:isbn': {
    GET: route(
      { summary: 'One book', params: Isbn, responses: { 200: Book, 404: Missing } },
      ({ params, respond }) => books.get(params.isbn) ?? respond(404, { reason: 'no such book' }),
    ),
    PUT: route(
      { summary: 'Add or replace a book', params: Isbn, body: Book, responses: { 204: null } },
      ({ params, body, respond }) => {
        books.set(params.isbn, body)
        return respond(204, null)
      },
    ),
  },
  '/books': {
    GET: route(
      {
        summary: 'Books, the first by title',
        query: z.object({ limit: z.coerce.number().int().min(1).max(100).default(10) }),
        responses: { 200: z.array(Book) },
      },
      ({ query }) =>
        [...books.keys()]
          .flatMap((isbn) => books.get(isbn) ?? [])
          .sort((a, b) => a.title.localeCompare(b.title))
          .slice(0, query.limit),
    ),
  },
}

export const routes = use(
  {
    ...api,
    '/openapi.json': openApi(api, { info: { title: 'Books', version: '1.0.0' } }),
    '/docs/*': openApiPage({ title: 'Books' }),
  },
  requestId(),
)
export const error = jsonErrors()

if (isMainThread) {
  const call = client<typeof api>(createApp({ routes, error }))
  const put = (isbn: string, title: string, year: number) =>
    call('PUT', '/books/:isbn', { params: { isbn }, body: { title, year } })
  assert.equal((await put('9780131103627', 'The C Programming Language', 1988)).status, 204)
  assert.equal(
    (await put('9780262510875', 'Structure and Interpretation of Computer Programs', 1996)).status,
    204,
  )
  const refused = await put('short', '', 1.5)
  assert.ok(refused.status === 422)
  assert.deepEqual(
    refused.body.errors.map(({ where, path }) => [where, ...path].join('.')),
    ['params.isbn', 'body.title', 'body.year'],
  )
  const found = await call('GET', '/books', { query: { limit: 1 } })
  assert.ok(found.status === 200)
  console.log(`${books.size} books, the first is ${found.body[0]?.title}`)
}
