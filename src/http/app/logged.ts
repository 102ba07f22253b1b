/**
 * Calls of logs that the app gave: one that fails, at once or later, costs neither an answer nor the process.
 *
 * Nothing waits for a log, so a promise that it gives is only watched for its failure.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'

/** Call a log; `what` names it on the console, where a failure of it is told. */
export function logged(what: string, call: () => unknown): void {
  const report = (error: unknown): void => console.error(`corespun/http: ${what} failed:`, error)
  try {
    const promise = promiseOf(call())
    if (promise !== undefined) whenSettled(promise, () => {}, report)
  } catch (error) {
    report(error)
  }
}
