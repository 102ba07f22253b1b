/**
 * A module whose function uses another one of it, for tests of placement.
 *
 * Workers import it.
 */
const factor = Number('2')

/** Twice the input, by what only this module has. */
export function doubledByModule(x: number): number {
  return x * factor
}
