/**
 * A function for `corespun run`: counts the lines of a file.
 *
 *   npx corespun run examples/lines.ts docs
 */
import { readFileSync } from 'node:fs'

/** Returns the number of lines of the file at `path`. */
export function lines(path: string): { path: string; lines: number } {
  return { path, lines: readFileSync(path, 'utf8').split('\n').length }
}
