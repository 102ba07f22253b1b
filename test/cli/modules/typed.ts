/**
 * A TypeScript module as users write them: types to strip, an import with its ending, a type-only import.
 * Node 20 strips none of it by itself.
 */
import type { ParsedPath } from 'node:path'
import { double } from './double.ts'

interface Answer {
  readonly name: ParsedPath['name']
  readonly twice: number
}

export function answer(item: string): Answer {
  return { name: item satisfies string, twice: double(Number(item)) }
}
