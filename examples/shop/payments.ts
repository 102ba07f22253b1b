/**
 * Payments, by the provider at SHOP_PAYMENTS, or in a sandbox that takes no money.
 *
 * Both take a payment once for each key, however often it is asked for, and none for a key that was
 * cancelled before: so steps may be repeated, and an order whose payment is in doubt cancels it.
 */
import { NonRetryableError } from 'corespun/fleet'
import { store } from 'corespun/store'
import { z } from 'zod'
import { paymentsUrl } from './settings.ts'

/** `card` is what the provider's form in the browser has made of a card; its number never comes here. */
export interface Payment {
  readonly key: string
  readonly cents: number
  readonly card: string
}

interface Provider {
  /**
   * Takes a payment and returns its receipt.
   * @throws {NonRetryableError} For a payment that is declined; with another error it may be tried again.
   */
  charge(payment: Payment, signal?: AbortSignal): Promise<string>
  cancel(key: string, signal?: AbortSignal): Promise<void>
}

const Receipt = z.object({ receipt: z.string() })

const provider = (url: string): Provider => ({
  async charge({ key, cents, card }, signal) {
    const response = await fetch(`${url}/payments/${encodeURIComponent(key)}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cents, card }),
      ...(signal && { signal }),
    })
    if (response.status === 402) throw new NonRetryableError('The card was declined.')
    if (!response.ok) throw new Error(`the payment provider responds with ${response.status}`)
    return Receipt.parse(await response.json()).receipt
  },
  async cancel(key, signal) {
    const response = await fetch(`${url}/payments/${encodeURIComponent(key)}`, {
      method: 'DELETE',
      ...(signal && { signal }),
    })
    if (!response.ok) throw new Error(`the payment provider responds with ${response.status}`)
  },
})

/** The card `declined` is declined, all others pay. */
function sandbox(): Provider {
  const cancelled = store.getOrCreate<true>('shop.sandbox', { entriesMax: 10_000 })
  return {
    charge: async ({ key, card }) => {
      if (card === 'declined' || cancelled.has(key)) throw new NonRetryableError('The card was declined.')
      return `sandbox ${key}`
    },
    cancel: async (key) => cancelled.set(key, true),
  }
}

export const payments = paymentsUrl === undefined ? sandbox() : provider(paymentsUrl)
