/**
 * Takes the pieces of an order from the stock, and puts them back.
 *
 * A step that has run before a crash may run again, so each of these may: what an order holds is kept with
 * the pieces, in one store, whose file is always that of one moment.
 */
import { NonRetryableError } from 'corespun/fleet'
import { atomically } from 'corespun/store'
import { stock, type Stock } from './stores.ts'

export interface OrderLine {
  readonly sku: string
  readonly name: string
  /** Of one piece, as the customer has seen it. */
  readonly cents: number
  readonly count: number
}

/** What the pieces are held for. */
interface Order {
  readonly key: string
  readonly lines: readonly OrderLine[]
}

/** @throws {NonRetryableError} If there are not enough pieces of a product; then nothing is held. */
export const reserve = (order: Order): Promise<void> =>
  changed(order, (pieces, { name, count }) => {
    if (pieces.held[order.key] !== undefined) return pieces
    if (pieces.free < count) throw new NonRetryableError(`There are only ${pieces.free} of ${name} left.`)
    return { free: pieces.free - count, held: { ...pieces.held, [order.key]: count } }
  })

/** Puts back what the order holds. */
export const release = (order: Order): Promise<void> =>
  changed(order, ({ free, held: { [order.key]: count = 0, ...held } }) => ({ free: free + count, held }))

/** The order is paid: its pieces leave. */
export const dispatch = (order: Order): Promise<void> =>
  changed(order, ({ free, held: { [order.key]: _, ...held } }) => ({ free, held }))

async function changed({ lines }: Order, change: (pieces: Stock, line: OrderLine) => Stock): Promise<void> {
  await atomically((tx) => {
    for (const line of lines)
      tx.update(stock, line.sku, (pieces = { free: 0, held: {} }) => change(pieces, line))
  })
  await stock.flush()
}
