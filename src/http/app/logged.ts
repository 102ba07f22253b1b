/**
 * Calls the app's log functions: one that throws or rejects affects neither the response nor the process.
 *
 * A promise that a log function returns is not awaited; only its rejection is handled.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'

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
