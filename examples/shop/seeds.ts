/**
 * The shop under seeds: customers order the last pieces while its process is killed and started again, and
 * requests and payments are cut off. Every order ends; a payment is taken for those that were dispatched,
 * and for no other; no piece is lost, and none is sold twice.
 *
 *   npx corespun test --seeds 10000 examples/shop/seeds.ts
 */
import assert from 'node:assert/strict'
import { check, exactlyOnce, type World } from 'corespun/test'

process.env['SHOP_PAYMENTS'] = 'http://localhost:4000'
const { fill } = await import('./catalogue.ts')
const { openOrders } = await import('./orders.ts')
const { shop } = await import('./shop.ts')
const { openStores } = await import('./stores.ts')

const TEA = { sku: 'tea', name: 'Tea', text: '', cents: 500, stock: 3 }
const CUPS = { sku: 'cups', name: 'Cups', text: '', cents: 900, stock: 1 }
const HOUR_MS = 3_600_000
const ORIGIN = 'http://localhost:3000'

/** A process of the shop. */
const start = ({ connect, serve, sleep, spawn }: World) =>
  spawn(async () => {
    openStores()
    fill([TEA, CUPS])
    await openOrders(connect())
    await serve({ routes: shop({}) })
    await sleep(HOUR_MS)
  }, 'shop')

/** The provider of payments, which is not killed. @returns The orders of the payments that it has taken. */
async function provider({ serve }: World): Promise<() => string[]> {
  /** By the key of the order; `undefined` is one that was cancelled. */
  const payments = new Map<string, string | undefined>()
  const charge = ({ params: { key } }: { readonly params: { readonly key: string } }) => {
    if (payments.has(key) && payments.get(key) === undefined) return new Response(null, { status: 402 })
    payments.set(key, `receipt of ${key}`)
    return { receipt: payments.get(key)! }
  }
  const cancel = ({ params: { key } }: { readonly params: { readonly key: string } }) => {
    payments.set(key, undefined)
    return new Response(null, { status: 204 })
  }
  await serve({ port: 4000, routes: { '/payments/:key': { PUT: charge, DELETE: cancel } } })
  // A key has the customer and the order.
  return () => [...payments].flatMap(([key, receipt]) => (receipt === undefined ? [] : key.split(' ')[1]))
}

/** A browser with its cookie. The shop may be down, or the connection reset: then it asks again. */
function browser({ fetch, sleep }: World) {
  let cookie = ''
  const asked = async (
    path: string,
    method = 'GET',
    body?: object,
    key = '',
  ): Promise<Record<string, unknown>> => {
    const headers = { 'content-type': 'application/json', cookie, 'idempotency-key': key }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    try {
      const response = await fetch(`${ORIGIN}${path}`, init)
      const read = (await response.json()) as object
      cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? cookie
      if (response.status < 500) return { status: response.status, ...read }
    } catch {}
    await sleep(50)
    return asked(path, method, body, key)
  }
  return asked
}

/** Orders one piece of each. @returns What was dispatched, by the order. */
async function order(world: World, skus: readonly string[]): Promise<[id: string, skus: string[]][]> {
  const asked = browser(world)
  const id = world.id()
  let basket: Awaited<ReturnType<typeof asked>> = {}
  for (const sku of skus) basket = await asked(`/api/basket/${sku}`, 'PUT', { count: 1 })
  const { cents, lines } = basket
  const made = await asked('/api/orders', 'POST', { cents, card: 'a card' }, id)
  // As long as there is no order, a basket may be lost with the process, or a part of it.
  if (made['status'] === 409) return []
  for (;;) {
    const { status } = await asked(`/api/orders/${id}`)
    if (status === 'failed') return []
    if (status === 'done') return [[id, (lines as { readonly sku: string }[]).map(({ sku }) => sku)]]
    assert.equal(status, 'open')
    await world.sleep(1000)
  }
}

const { seeds, schedules } = await check(
  { seeds: 50, stepsMax: 100_000, network: { resets: 0.01 } },
  async (world) => {
    const { random, sleep, spawn } = world
    const paid = await provider(world)
    const first = start(world)
    const baskets = [['tea', 'cups'], [random() < 0.5 ? 'tea' : 'cups']]
    const customers = baskets.map((skus) => spawn(() => order(world, skus), 'customer'))
    await sleep(random() * 200)
    first.kill()
    start(world)
    const dispatched = new Map<string, string[]>()
    for (const customer of customers) for (const [id, skus] of await customer.join()) dispatched.set(id, skus)
    exactlyOnce(paid(), dispatched.keys())
    const pieces = [...dispatched.values()].flat()
    const asked = browser(world)
    for (const { sku, stock } of [TEA, CUPS]) {
      const left = await asked(`/api/products/${sku}`)
      assert.equal(left['stock'], stock - pieces.filter((each) => each === sku).length, sku)
    }
  },
)
console.log(`${seeds} seeds, ${schedules} schedules`)
