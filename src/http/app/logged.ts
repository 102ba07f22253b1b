/**
 * Calls the app's log functions: one that throws or rejects affects neither the response nor the process.
 *
 * A promise that a log function returns is not awaited; only its rejection is handled. What logs a request
 * learns of its end here, too.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'
import { exchangeOf, onAbort } from '../fetch/request.ts'

/** Receives the response to an error, as it is sent: its status, and the bytes of its body. */
export type FailureRecord = (status: number, bytes: number) => void

const records = new WeakMap<object, FailureRecord>()
/** Requests whose responses are recorded, of this thread: without any, nobody looks for them. */
export const recording = { count: 0 }

/** Calls `record` once with what this request receives, unless `takeRecord` is called before. */
export function recordFailure(request: object, record: FailureRecord): void {
  if (!records.has(request)) recording.count += 1
  records.set(request, record)
}

/** The record of a request, which is then made elsewhere; `undefined` without one. */
export function takeRecord(request: object): FailureRecord | undefined {
  const record = records.get(request)
  if (record === undefined) return undefined
  records.delete(request)
  recording.count -= 1
  return record
}

/** Calls a log function and reports its failure on the console, where `what` names the function. */
export function logged(what: string, call: () => unknown): void {
  const report = (error: unknown): void => console.error(`corespun/http: ${what} failed:`, error)
  try {
    const promise = promiseOf(call())
    if (promise !== undefined) whenSettled(promise, () => {}, report)
  } catch (error) {
    report(error)
  }
}

/**
 * Calls `act` when the connection of a request closes before its response. A client that half-closes it still
 * receives that.
 */
export function onClosed(request: unknown, act: () => void): void {
  const exchange = exchangeOf(request)
  if (exchange === undefined) return
  const look = (): void => {
    if (exchange.isClosed) return act()
    const before = exchange.onClose
    exchange.onClose = () => {
      before?.()
      act()
    }
  }
  if (exchange.aborted) look()
  else onAbort(exchange, look)
}
