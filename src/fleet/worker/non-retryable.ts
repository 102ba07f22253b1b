/**
 * The error with which a job fails for good, whatever attempts it has left.
 *
 * It is recognized where it is thrown, so a class that extends it needs no registration.
 */
import { register } from '../../transport/internal.ts'

/**
 * Throw it in a job that no further attempt can end: it becomes a dead letter at once. In a call it is an
 * error like others.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { NonRetryableError, connect, host } from 'corespun/fleet'
 *
 * export function charge(card: string): string {
 *   if (card === 'stolen') throw new NonRetryableError('the card is blocked')
 *   return 'charged'
 * }
 * assert.throws(() => charge('stolen'), { name: 'NonRetryableError' })
 * ```
 */
export class NonRetryableError extends Error {
  static {
    this.prototype.name = 'NonRetryableError'
  }
}

register(NonRetryableError, { cid: 'corespun.NonRetryableError' })
