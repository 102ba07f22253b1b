/**
 * Zones on other machines, as the modules below corespun/fleet see them.
 *
 * `arrow.on` takes one, and a `FarZone` is one. Neither imports the other: the symbol is registered.
 */

/** The name of the property of a {@link AnyFarZone}: `Symbol.for('corespun.far')`. */
export const FAR: unique symbol = Symbol.for('corespun.far') as never

/** A zone on other machines, which runs parts of arrows: a `FarZone` of corespun/fleet. */
export interface AnyFarZone {
  /** Its name in the fleet. */
  readonly name: string
  /** What runs the parts. */
  readonly [FAR]: FarHosts
}

/** The hosts of an {@link AnyFarZone}. */
export interface FarHosts {
  /** Zones with the same one are the same one; no zone of this process has it as its id. */
  readonly key: string
  /** The URL of the module whose exports they run; `undefined` when it is not known. */
  readonly module: string | undefined
  /**
   * Run a part of an arrow on one host. Rejects as a far call does.
   * @param part The frame of a graph whose functions are names of exports.
   * @returns The reply of `runPart` of corespun/arrow.
   */
  run(part: Uint8Array, input: unknown, signal: AbortSignal | undefined): Promise<unknown>
}

export function isFar(value: unknown): value is AnyFarZone {
  return typeof value === 'object' && value !== null && FAR in value
}
