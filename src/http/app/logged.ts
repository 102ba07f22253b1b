/**
 * Calls of logs that the app gave: one that fails, at once or later, costs neither an answer nor the process.
 *
 * Nothing waits for a log, so a promise that it gives is only watched for its failure.
 */

/** Call a log; `what` names it on the console, where a failure of it is told. */
export function logged(what: string, call: () => unknown): void {
  const report = (error: unknown): void => console.error(`skein/http: ${what} failed:`, error)
  try {
    const told = call() as PromiseLike<unknown> | null | undefined
    if (typeof told?.then === 'function') told.then(undefined, report)
  } catch (error) {
    report(error)
  }
}
