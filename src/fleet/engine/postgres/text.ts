/**
 * Keys as texts of Postgres, which have any character but U+0000, and what rows have in common.
 *
 * U+0001 leads to the one that is meant; a key without either is its text.
 */
import type { Row } from './link.ts'

const [ZERO, LEAD] = ['\0', '\u0001']

export const textOf = (key: string): string =>
  key.includes(ZERO) || key.includes(LEAD)
    ? key.replaceAll(LEAD, `${LEAD}${LEAD}`).replaceAll(ZERO, `${LEAD}\u0002`)
    : key

/** @param text As {@link textOf} has returned it. */
export function keyOf(text: unknown): string {
  const written = text as string
  if (!written.includes(LEAD)) return written
  let key = ''
  for (let at = 0; at < written.length; at++)
    key += written[at] === LEAD ? (written[++at] === LEAD ? LEAD : ZERO) : written[at]
  return key
}

/** Two items differ in it: within a millisecond by their number. */
export const addedMsOf = ({ seq, added_ms: addedMs }: Row): number =>
  Number(addedMs) + (Number(seq) % 1000) / 1000

/** The parts of that: the ms, and the number within. */
export const addedIn = ({ addedMs }: { readonly addedMs: number }): [ms: number, within: number] => [
  Math.floor(addedMs),
  Math.round((addedMs % 1) * 1000),
]
