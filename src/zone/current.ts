/**
 * The name of the zone whose worker this thread is.
 *
 * Set once, by the worker's main module, before any task; it never changes, since workers do not change
 * zones.
 */

let current: string | undefined
let forking: () => void = () => {}

/**
 * This thread is a worker of that zone; `beforeFork` is called before a task calls its own zone.
 * @internal
 */
export function setCurrent(zone: string, beforeFork: () => void): void {
  current = zone
  forking = beforeFork
}

/** A task of this worker is about to call its own zone. @internal */
export function beforeFork(): void {
  forking()
}

/** The zone whose worker this thread is; `undefined` in all other threads. */
export function currentZoneId(): string | undefined {
  return current
}
