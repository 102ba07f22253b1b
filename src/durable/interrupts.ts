/**
 * Promises that end when a signal is aborted, as that of a fiber that is interrupted.
 *
 * A wait leaves nothing behind: a promise that never settles would keep all that have waited for it.
 */
import { unwatch, watch } from '../base/index.ts'

/** Resolves with the promise; with `undefined` when the signal is aborted before. */
export function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined)
    watch(signal, end)
    if (signal.aborted) end()
    promise.then(resolve, reject).finally(() => unwatch(signal, end))
  })
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else watch(signal, () => resolve(undefined))
  })
}
