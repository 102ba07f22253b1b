/**
 * The route of table contract by Elysia on Bun: `elysia.js <name> <port>`, run by Bun itself.
 *
 * Its schemas are Elysia's own, which it compiles. None is declared for the response: Elysia would check it
 * for each request, which Corespun does not in production.
 */
import { Elysia, t } from 'elysia'
import { PATTERN, placed } from './order.ts'

const filled = (maxLength: number): unknown => t.String({ minLength: 1, maxLength })
const upTo = (maxLength: number): unknown => t.String({ maxLength })
const oneOf = (...values: readonly string[]): unknown => t.Union(values.map((value) => t.Literal(value)))

const order = t.Object({
  reference: filled(40),
  currency: oneOf('EUR', 'USD', 'GBP'),
  total: t.Number({ minimum: 0 }),
  express: t.Boolean(),
  customer: t.Object({
    id: t.Integer(),
    name: filled(80),
    email: t.String({ format: 'email' }),
    phone: t.Optional(upTo(40)),
  }),
  address: t.Object({
    street: t.String({ minLength: 1 }),
    city: t.String({ minLength: 1 }),
    zip: upTo(12),
    country: t.String({ minLength: 2, maxLength: 2 }),
  }),
  lines: t.Array(
    t.Object({
      sku: filled(20),
      title: upTo(120),
      quantity: t.Integer({ minimum: 1 }),
      price: t.Number({ minimum: 0 }),
    }),
    { minItems: 1, maxItems: 100 },
  ),
  tags: t.Array(upTo(20), { maxItems: 10 }),
  note: t.Optional(upTo(1000)),
})

new Elysia()
  .get('/', () => 'ready')
  .post(PATTERN, ({ params, query, body }) => placed(params.shop, query.source, query.limit, body), {
    params: t.Object({ shop: t.String({ pattern: '^\\d+$' }) }),
    query: t.Object({ source: oneOf('web', 'app'), limit: t.Numeric({ minimum: 1, maximum: 100 }) }),
    body: order,
  })
  .listen({ port: Number(process.argv[3]), hostname: '127.0.0.1' })
