/**
 * What the service of the table `service` computes, and what it must answer.
 *
 * Some ten milliseconds of arithmetic that no engine can shorten: each turn needs the one before it.
 */

/** The answer of the light route. */
export const GREETING = 'hello'
/** Seeds that clients send; they have the results. */
export const SEEDS = 8

/** The heavy stage. Captures nothing: a zone gets its text. */
export function heavy(seed: number): number {
  let value = seed >>> 0
  for (let turn = 0; turn < 6_000_000; turn += 1) value = (Math.imul(value, 1_103_515_245) + 12_345) >>> 0
  return value
}
