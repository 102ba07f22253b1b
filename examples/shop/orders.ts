/**
 * Orders behind HTTP: a request starts one, or finds the one that it has started before; its progress is a
 * stream of events that resumes.
 *
 * An order is found with the session that has started it, and by nobody else.
 */
import { runs } from 'corespun/durable'
import { type Fleet, NonRetryableError } from 'corespun/fleet'
import { events, type HttpRequest, route, StatusError } from 'corespun/http'
import { z } from 'zod'
import { type Customer, priced, sessionOf, withoutOrder } from './basket.ts'
import { checkout, type Stage } from './checkout.ts'
import { sessionStore } from './stores.ts'

/** Each worker runs orders, and continues those of one that has died, at the latest after `leaseMs`. */
const opened = (fleet: Fleet) => runs(fleet, { definitions: [checkout], leaseMs: 5000 })
let work: Awaited<ReturnType<typeof opened>>

/** Before a request is served. */
export async function openOrders(fleet: Fleet): Promise<void> {
  work = await opened(fleet)
}

const Id = z.object({ id: z.uuid() })
const Order = z.object({ status: z.enum(['open', 'done', 'failed']), reason: z.string().optional() })
/** Problem details (RFC 9457). */
const Conflict = z.object({ title: z.string(), status: z.literal(409), detail: z.string() })
const conflict = (detail: string) =>
  [
    409,
    { title: 'Conflict', status: 409, detail },
    { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
  ] as const
const Reached = z.object({
  'last-event-id': z
    .string()
    .regex(/^(\d|end)$/)
    .optional(),
})

export const orders = {
  '/api/orders': {
    POST: route(
      {
        summary: 'Order what is in the basket; the same Idempotency-Key is the same order',
        headers: z.object({ 'idempotency-key': Id.shape.id }),
        /** `cents` is what the customer has agreed to pay. */
        body: z.object({ cents: z.int(), card: z.string().min(1).max(200) }),
        responses: { 202: Id, 409: Conflict },
      },
      async ({ request, headers: { 'idempotency-key': id }, body, respond }) => {
        const session = sessionOf(request)
        const customer = await session.get()
        if (customer === undefined) return respond(...conflict('the basket is empty'))
        const settle = (order: string) => session.update((before = customer) => withoutOrder(before, order))
        const key = keyOf(customer, id)
        if (await exists(key)) {
          const { last, basket } = await settle(id)
          const isSame = last?.id === id && last.cents === body.cents && Object.keys(basket).length === 0
          if (!isSame) return respond(...conflict('an earlier order has this Idempotency-Key; look again'))
        } else {
          // The request of the last order may have died before it took this out of the basket.
          const { last } = customer
          const isLeft = last !== undefined && (await exists(keyOf(customer, last.id)))
          const { basket } = isLeft ? await settle(last.id) : customer
          const { lines, cents } = priced({ ...customer, basket })
          if (lines.length === 0) return respond(...conflict('the basket is empty'))
          if (cents !== body.cents) return respond(...conflict('prices have changed; look again'))
          await session.update((before = customer) => ({ ...before, last: { id, cents, basket } }))
          // A crash must not lose who the customer is: nobody else finds the order.
          await sessionStore.flush()
          await work.start('checkout', { key, lines, cents, card: body.card }, { key })
          await settle(id)
        }
        return respond(202, { id }, { location: `/api/orders/${id}` })
      },
    ),
  },
  '/api/orders/:id': {
    GET: route(
      { summary: 'An order', params: Id, responses: { 200: Order } },
      async ({ request, params: { id } }) => {
        const { status, error, steps } = await (await runOf(request, id)).state()
        // Also one that was cancelled when its pieces had left.
        const isDispatched = steps.some((step) => step.name === 'dispatch' && step.status === 'done')
        if (isDispatched) return { status: 'done' as const }
        if (status !== 'failed' && status !== 'cancelled') return { status: 'open' as const }
        // What is meant for the customer; the message of any other error is not.
        const reason =
          error instanceof NonRetryableError ? error.message : 'The order could not be completed.'
        return { status: 'failed' as const, reason }
      },
    ),
  },
  '/api/orders/:id/events': {
    GET: route({ summary: 'The stages of an order', params: Id, headers: Reached }, async (input) => {
      const last = input.headers['last-event-id']
      if (last === 'end') return new Response(null, { status: 204 }) // EventSource reconnects no more
      const run = await runOf(input.request, input.params.id)
      return events(
        async function* (left) {
          let next = last === undefined ? 0 : Number(last) + 1
          for await (const stages of run.progress<Stage[]>({ signal: left }))
            for (; next < stages.length; next++) yield { id: String(next), data: stages[next] }
          if (!left.aborted) yield { id: 'end', event: 'end', data: (await run.state()).status }
        },
        { signal: closing.signal },
      )
    }),
  },
}

const closing = new AbortController()

/** @param drained Resolves when the open requests are done. */
export async function closeOrders(drained: Promise<void>): Promise<void> {
  closing.abort()
  await drained
  await work.close()
}

/** @throws {StatusError} 404 for an order that is not one of this customer. */
async function runOf(request: HttpRequest, id: string) {
  const customer = await sessionOf(request).get()
  const key = customer && keyOf(customer, id)
  if (key === undefined || !(await exists(key))) throw new StatusError(404, 'there is no such order')
  return work.get('checkout', key)
}

const keyOf = (customer: Customer, id: string): string => `${customer.id} ${id}`

async function exists(key: string): Promise<boolean> {
  const state = work.get('checkout', key).state()
  return state.then(
    () => true,
    (error: { code?: string }) => {
      if (error.code === 'RUN_UNKNOWN') return false
      throw error
    },
  )
}
