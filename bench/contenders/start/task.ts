/**
 * The task of every pool in table `start`.
 * It is small, so that what is measured is the way to its result.
 */

/** As Corespun, piscina and tinypool call it. */
export default function double(value: number): number {
  return value * 2
}
