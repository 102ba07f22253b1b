/**
 * A service of Effects: its computing on other cores, a store that all of them share, and the server.
 *
 * `node examples/effect/main.ts` prints what three requests receive.
 */
import { Context, Effect, Layer, Option } from 'effect'
import { type EffectStore, type EffectZone, handler, makeServer, makeStore, makeZone } from 'corespun/effect'
import type { HttpRequest } from 'corespun/http'
import { Order, type Prices } from './work.ts'

class Pricing extends Context.Service<Pricing, EffectZone<Prices>>()('shop/Pricing') {
  static readonly layer = Layer.effect(
    Pricing,
    makeZone<Prices>('pricing', { workers: 2, setup: new URL('./work.ts', import.meta.url) }),
  )
}

class Orders extends Context.Service<Orders, EffectStore<Order>>()('shop/Orders') {
  static readonly layer = Layer.effect(Orders, makeStore<Order>('orders', { entriesMax: 1000 }))
}

const order = handler((request: HttpRequest<'/orders/:id'>) =>
  Effect.gen(function* () {
    const [pricing, orders] = [yield* Pricing, yield* Orders]
    const work = pricing.module<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
    const { id } = request.params
    const found = yield* orders.getOrCompute(id, work.price(Number(id)))
    return { ...found, euros: found.euros }
  }).pipe(
    Effect.catchTag('Unpriced', ({ id }) => Effect.succeed({ unpriced: id })),
    Effect.withSpan('order'),
  ),
)

const program = Effect.gen(function* () {
  const server = yield* makeServer({ port: 0, quiet: true, routes: { '/orders/:id': yield* order } })
  const orders = yield* Orders
  yield* orders.use((store) => store.set('0', new Order({ id: 0, cents: 1999 })))
  for (const id of [0, 2, 3]) {
    const text = yield* Effect.promise(async () => (await fetch(`${server.url}/orders/${id}`)).text())
    console.log(text)
  }
  console.log(Option.isSome(yield* orders.get('2')), Option.isSome(yield* orders.get('3')))
})

const services = Layer.mergeAll(Pricing.layer, Orders.layer)
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(services)))
