/**
 * A module with a class of its own, which its functions take.
 * The caller has imported it; a worker does so when a task calls one of its exports.
 */
import { register } from '../transport/index.ts'

export class Amount {
  readonly cents: number
  constructor(cents: number) {
    this.cents = cents
  }
}
register(Amount, { cid: 'classed.Amount' })

export function centsOf(amount: Amount, ...more: Amount[]): number {
  if (!(amount instanceof Amount)) throw new TypeError('no Amount')
  return more.reduce((sum, { cents }) => sum + cents, amount.cents)
}

export const later = async (amount: Amount): Promise<Amount> => amount
