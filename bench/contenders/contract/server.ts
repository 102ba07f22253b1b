/**
 * One server of table contract on Node, in a process of its own: `server.js <name> <port>`.
 *
 * All have the one route of order.ts, with a schema of one library or without any.
 */
import { type Contract, type HttpRequest, route, type Schema, serve } from 'corespun/http'
import { fastify as createFastify } from 'fastify'
import { PATTERN, placed } from './order.ts'
import { byAjv, byArktype, byValibot, byZod } from './schemas.ts'

const host = '127.0.0.1'
const [name, port] = [process.argv[2], Number(process.argv[3])]

type Order = Record<string, unknown>
interface Input {
  readonly params: { readonly shop: string }
  readonly query: { readonly source: string; readonly limit: number }
  readonly body: Order
}

const handler = ({ params, query, body }: Input): object =>
  placed(params.shop, query.source, query.limit, body)
const withSchema = (contract: Contract): unknown => route(contract, handler as never)

const HANDLERS: Readonly<Record<string, () => unknown>> = {
  'corespun without a schema': () => withoutSchema,
  'zod called by hand': byHand,
  'corespun with zod': () => withSchema(byZod),
  'corespun with valibot': () => withSchema(byValibot),
  'corespun with arktype': () => withSchema(byArktype),
}

if (name === 'fastify with JSON Schema') await fastify()
else {
  const routes = { '/': () => 'ready', [PATTERN]: { POST: HANDLERS[name]() } }
  await serve({ quiet: true, core: 'native', host, port, routes: routes as never })
}

async function withoutSchema(request: HttpRequest): Promise<object> {
  const query = queryOf(request)
  const order = (await request.json()) as Order
  return placed(request.params['shop'], query.get('source')!, Number(query.get('limit')), order)
}

/** What a team would write without `route`: the least that can be between a request and three schemas. */
function byHand(): unknown {
  const [params, query, body] = [byZod.params, byZod.query, byZod.body].map(
    (schema: Schema) => schema['~standard'].validate,
  )
  return async (request: HttpRequest): Promise<object> => {
    const results = [
      params(request.params),
      query(Object.fromEntries(queryOf(request))),
      body(await request.json()),
    ] as { readonly value: never; readonly issues?: unknown }[]
    if (results.some(({ issues }) => issues !== undefined)) return new Response('invalid', { status: 422 })
    return handler({ params: results[0].value, query: results[1].value, body: results[2].value })
  }
}

/** Without the host, which a `new URL` would parse for each request. */
function queryOf({ url }: HttpRequest): URLSearchParams {
  return new URLSearchParams(url.slice(url.indexOf('?')))
}

async function fastify(): Promise<void> {
  const app = createFastify()
  app.get('/', () => 'ready')
  app.post(PATTERN, { schema: byAjv }, ({ params, query, body }) =>
    handler({ params: params as never, query: query as never, body: body as Order }),
  )
  await app.listen({ port, host })
}
