/**
 * What each command of table `start` does with a file: next to nothing,
 * so that the figures are those of the commands.
 */
import { readFileSync } from 'node:fs'

/** The length of the file's text. */
export default function size(path: string): number {
  return readFileSync(path, 'utf8').length
}
