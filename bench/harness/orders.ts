/**
 * A process that does what its parent orders over IPC, one order at a time: the child's end of `Child`.
 *
 * A file of its own, because a measured process must not load what starts processes.
 */
import { BenchError } from './errors.ts'

/** A result or a refusal as it travels; an undefined result is left out on the way. */
export type Outcome =
  | { readonly result?: unknown }
  | { readonly code?: string; readonly facts?: unknown; readonly text: string }

/**
 * Send `ready`, then answer each order with the result of `act` until the channel closes, which ends the
 * process.
 */
export function serveOrders<Order>(act: (order: Order) => unknown, ready?: unknown): void {
  const outcomeOf = async (order: Order): Promise<Outcome> => {
    try {
      return { result: await act(order) }
    } catch (error) {
      if (error instanceof BenchError) return { code: error.code, facts: error.facts, text: error.message }
      return { text: error instanceof Error ? String(error.stack) : String(error) }
    }
  }
  // Never rejected: what an order throws is its outcome.
  process.on('message', (order: Order) => void outcomeOf(order).then((outcome) => process.send!(outcome)))
  process.on('disconnect', () => process.exit(0))
  process.send!({ result: ready } satisfies Outcome)
}
