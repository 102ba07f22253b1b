/**
 * An order as a durable run: pieces are reserved, paid and dispatched, each once, across crashes. An order
 * that fails or is cancelled is undone, unless it was dispatched: its payment is cancelled, its pieces are
 * put back.
 *
 * `npx corespun runs sqlite:shop-data/orders.db` shows all orders to the operator, and cancels them.
 */
import { durable, expose, step } from 'corespun/durable'
import { addFinalizer, Schedule, uninterruptible } from 'corespun/fiber'
import { payments } from './payments.ts'
import { dispatch, type OrderLine, release, reserve } from './stock.ts'

interface Order {
  readonly key: string
  readonly lines: readonly OrderLine[]
  readonly cents: number
  readonly card: string
}

/** What has been done for an order, in this order. */
export type Stage = 'reserved' | 'paid' | 'dispatched'

/** For half an hour: providers have outages. */
const patient = {
  retry: Schedule.exponential(200).and(Schedule.recurs(13)),
  timeoutMs: 10_000,
}

export const checkout = durable('checkout', function* (order: Order) {
  const stages: Stage[] = []
  yield* expose(() => stages)
  addFinalizer(function* ({ kind }) {
    if (kind === 'success' || stages.includes('dispatched')) return
    try {
      yield* step('cancel payment', ({ signal }) => payments.cancel(order.key, signal), [], patient)
    } finally {
      yield* step('release', () => release(order))
    }
  })
  yield* step('reserve', () => reserve(order))
  stages.push('reserved')
  const receipt = yield* step('pay', ({ signal }) => payments.charge(order, signal), [], patient)
  stages.push('paid')
  yield* uninterruptible(function* () {
    yield* step('dispatch', () => dispatch(order))
    stages.push('dispatched')
  })
  return receipt
})
