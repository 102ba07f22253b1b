/**
 * The name of the zone whose worker this thread is.
 *
 * Set once, by the worker's main module, before any task; it never changes, since workers do not change
 * zones.
 */

let current: string | undefined

/** This thread is a worker of that zone. @internal */
export function setCurrent(zone: string): void {
  current = zone
}

/** The zone whose worker this thread is; `undefined` in all other threads. */
export function currentZoneId(): string | undefined {
  return current
}
