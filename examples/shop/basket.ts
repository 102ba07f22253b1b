/**
 * The basket of a customer. It is in the session, whose cookie is a random id: nothing in it can be forged.
 * What customers send is how many pieces; prices come from the products.
 */
import { randomUUID } from 'node:crypto'
import { getSession, type HttpRequest, route, type Session } from 'corespun/http'
import { z } from 'zod'
import { Missing } from './catalogue.ts'
import { Sku } from './product.ts'
import type { OrderLine } from './stock.ts'
import { products } from './stores.ts'

/** How many pieces, by product. */
type Pieces = Readonly<Record<string, number>>

export interface Customer {
  /** Part of the keys of the customer's orders, so that nobody else finds them. */
  readonly id: string
  readonly basket: Pieces
  /** `basket`: what is to be taken out of that of the customer once there is this order. */
  readonly last?: { readonly id: string; readonly cents: number; readonly basket: Pieces }
}

const LINES_MAX = 20
const Line = z.object({ sku: z.string(), name: z.string(), cents: z.int(), count: z.int() })
const Basket = z.object({ lines: z.array(Line), cents: z.int() }).meta({ id: 'Basket' })

export const sessionOf = (request: HttpRequest): Session<Customer> => getSession<Customer>(request)

/** The basket at the prices of now. A product that is not sold any more is not in it. */
export function priced({ basket }: Customer): { readonly lines: OrderLine[]; readonly cents: number } {
  const lines = Object.entries(basket).flatMap(([sku, count]) => {
    const product = products.get(sku)
    return product === undefined ? [] : [{ sku, name: product.name, cents: product.cents, count }]
  })
  return { lines, cents: lines.reduce((sum, { cents, count }) => sum + cents * count, 0) }
}

/** The customer without the pieces of an order, if it is the last one. */
export function withoutOrder(customer: Customer, id: string): Customer {
  const { basket, last } = customer
  if (last?.id !== id) return customer
  const left = Object.entries(basket).map(([sku, count]) => [sku, count - (last.basket[sku] ?? 0)] as const)
  return {
    ...customer,
    basket: Object.fromEntries(left.filter(([, count]) => count > 0)),
    last: { ...last, basket: {} },
  }
}

export const basket = {
  '/api/basket': {
    GET: route({ summary: 'The basket', responses: { 200: Basket } }, async ({ request }) => {
      const customer = await sessionOf(request).get()
      return customer === undefined ? { lines: [], cents: 0 } : priced(customer)
    }),
  },
  '/api/basket/:sku': {
    PUT: route(
      {
        summary: 'Pieces of a product in the basket; 0 removes it',
        params: z.object({ sku: Sku }),
        body: z.object({ count: z.int().min(0).max(99) }),
        responses: { 200: Basket, 404: Missing, 409: Missing },
      },
      async ({ request, params: { sku }, body: { count }, respond }) => {
        if (count > 0 && !products.has(sku)) return respond(404, { reason: `there is no product ${sku}` })
        let isFull = false
        const customer = await sessionOf(request).update((before = { id: randomUUID(), basket: {} }) => {
          const { [sku]: _, ...others } = before.basket
          isFull = count > 0 && Object.keys(others).length === LINES_MAX
          return isFull ? before : { ...before, basket: count === 0 ? others : { ...others, [sku]: count } }
        })
        if (isFull) return respond(409, { reason: `a basket holds ${LINES_MAX} products` })
        return priced(customer)
      },
    ),
  },
}
