/**
 * Values, errors and signals that do what no well-meaning ones do: each harms its own call, or nobody.
 *
 * A test fails here, too, by an error that nobody catches: the runner reports those of the process.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ZoneError } from './index.ts'
import { inZone } from './zones.test.support.ts'

/** What a worker that dies of it threw, and what its caller is told of that. */
const UNCAUGHT: readonly (readonly [name: string, () => unknown, reason: RegExp])[] = [
  ['an object that is no text', () => ({ toString: null, valueOf: null }), /\[Object\]|toString: null/],
  [
    'an error whose message is no text',
    () => Object.assign(new Error(), { message: { toString: null } }),
    /\[Object|toString: null/,
  ],
  ['an error with a cause that is no text', () => new Error('x', { cause: { toString: null } }), /x/],
  ['a symbol', () => Symbol('thrown'), /Symbol\(thrown\)/],
  ['nothing', () => undefined, /undefined/],
]

for (const [name, make, reason] of UNCAUGHT) {
  test(`${name}, thrown where nobody catches it, ends its worker alone, which says so`, () =>
    inZone({ workers: 1 }, async (own) => {
      const dies = (source: string): Promise<never> => {
        const value: unknown = new Function(`return (${source})()`)()
        setImmediate(() => {
          throw value
        })
        return new Promise(() => {})
      }
      const error = await own.run(dies, String(make)).catch((why: unknown) => why as ZoneError)
      assert.equal((error as ZoneError).code, 'WORKER_DIED')
      assert.match((error as ZoneError).message, reason)
      assert.equal(await own.run(() => 'next'), 'next')
    }))
}
