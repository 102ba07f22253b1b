/**
 * The version of this package, as its manifest has it.
 *
 * Read once, by who is asked for it.
 */
import { readFileSync } from 'node:fs'

let version: string | undefined

export function versionOf(): string {
  const read = (): string => readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return (version ??= (JSON.parse(read()) as { version: string }).version)
}
