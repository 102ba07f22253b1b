/**
 * What the workers of main.ts run: a class, an error, a service, and a function that returns an Effect.
 *
 * Both sides load this file, so both have the classes.
 */
import { Context, Effect, Layer, ManagedRuntime, Schema } from 'effect'
import { register } from 'corespun/transport'

export class Order extends Schema.Class<Order>('Order')({ id: Schema.Number, cents: Schema.Number }) {
  get euros(): string {
    return `${(this.cents / 100).toFixed(2)} EUR`
  }
}

export class Unpriced extends Schema.TaggedError<Unpriced>()('Unpriced', { id: Schema.Number }) {}

register(Order, { cid: 'shop.Order' })
register(Unpriced, { cid: 'shop.Unpriced' })

export class Prices extends Context.Service<Prices, { of(id: number): Effect.Effect<number, Unpriced> }>()(
  'shop/Prices',
) {
  static readonly layer = Layer.succeed(Prices)({
    of: (id) => (id > 2 ? Effect.fail(new Unpriced({ id })) : Effect.succeed(id * 995)),
  })
}

/** The services of each worker; main.ts passes this module to `makeZone`. */
export const setup = (): ManagedRuntime.ManagedRuntime<Prices, never> => ManagedRuntime.make(Prices.layer)

export const price = (id: number): Effect.Effect<Order, Unpriced, Prices> =>
  Effect.gen(function* () {
    const prices = yield* Prices
    return new Order({ id, cents: yield* prices.of(id) })
  })
