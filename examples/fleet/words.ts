/**
 * The heavy stages of pipeline.ts, which its hosts run.
 *
 * Nothing here depends on where it runs: `exported` declares what workers and hosts import by name.
 */
import { exported } from 'corespun/arrow'

export const split = exported(import.meta.url, (text: string): string[] => text.split(/\s+/), 'split')

export function longest(words: readonly string[]): string {
  return words.reduce((most, word) => (word.length > most.length ? word : most), '')
}
exported(import.meta.url, longest)
