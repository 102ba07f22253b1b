/**
 * What Corespun waits for, wherever a function of users returns something: what `await` would wait for.
 *
 * That is an object or a function whose `then` can be called. A `then` may be a getter, throw when called,
 * call back before it returns, or call back twice; code that keeps records of who waits sees none of it.
 */

const { then: PROMISE_THEN } = Promise.prototype

/** Whether `await` would wait for it; for code that refuses such values or keeps them, and does not wait. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/**
 * The promise of what `await` would wait for; `undefined` for all other values. A promise is returned as it
 * is. The `then` of another object is read once, here, and called once, in a microtask.
 * @throws What the getter of `then` throws.
 */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return undefined
  const { then } = value as { then?: unknown }
  if (typeof then !== 'function') return undefined
  return value instanceof Promise ? Promise.resolve(value) : adopted(value, then as Then)
}

type Then = (fulfil: (value: unknown) => void, reject: (reason: unknown) => void) => void

/** Apart from `promiseOf`, where a closure would cost every call its context. */
function adopted(value: object, then: Then): Promise<unknown> {
  const read: Then = (fulfil, reject) => then.call(value, fulfil, reject)
  // oxlint-disable-next-line unicorn/no-thenable -- it replaces the one that was read
  return Promise.resolve(Object.defineProperty({}, 'then', { value: read }))
}

/** Call one of the two when it has settled, as `await` waits: past any `then` of the promise's own. */
export function whenSettled<A>(
  promise: Promise<A>,
  fulfilled: (value: A) => void,
  rejected: (reason: unknown) => void,
): void {
  void PROMISE_THEN.call(promise, fulfilled as (value: unknown) => void, rejected)
}
