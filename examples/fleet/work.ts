/**
 * What the hosts of this example run: an invoice is computed, and each run of it is noted.
 *
 * Nothing here depends on where it runs. The note is what a side effect would be: with it the example counts
 * how often a job ran, which is at least once.
 */
import { appendFileSync } from 'node:fs'
import { currentJob } from 'corespun/fleet'

/** What is due, and by which run: another run of the same invoice would have another one. */
export interface Invoice {
  readonly cents: number
  readonly run: string
}

export function invoice(id: number): Invoice {
  const run = `${process.pid}.${performance.now()}`
  const { CORESPUN_RUNS: notes } = process.env
  if (notes !== undefined) appendFileSync(notes, `${currentJob()?.key ?? id}\n`)
  return { cents: centsOf(id), run }
}

/** A sum that takes about a millisecond. */
export function centsOf(id: number): number {
  let cents = id
  for (let item = 0; item < 200_000; item += 1) cents = (cents * 31 + item) % 1_000_003
  return cents
}
