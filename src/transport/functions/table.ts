/**
 * Which text has which number, in all threads of a process or in one.
 *
 * The native core has the table of the process; a thread without it has one of its own.
 */
import type { ScriptLocation } from './origin.ts'

/** The process-wide numbering of function texts. */
export interface FunctionTable {
  /** The number of a text, from 1; 0 when the table is full. */
  intern(key: string): number
  /** The text of a number; `undefined` when no thread numbered it. */
  interned(number: number): string | undefined
  /**
   * The number of the location (script and position) of `fn`; 0 before it has one, -1 when the location is
   * unknown: then functions are compared by their text. Called without a receiver.
   */
  readonly known?: ((fn: Function) => number) | undefined
  /** Assign the number to the location of `fn`. Called without a receiver. */
  readonly remember?: ((fn: Function, number: number) => void) | undefined
  /** The location of `fn` in the engine's records; `undefined` when unknown. */
  readonly origin?: ((fn: Function) => ScriptLocation | undefined) | undefined
}

/** A table of one thread, for tests and for threads without the native core. */
export function memoryTable(): FunctionTable {
  const keys: string[] = ['']
  const numbers = new Map<string, number>()
  return {
    intern(key) {
      const known = numbers.get(key)
      if (known !== undefined) return known
      numbers.set(key, keys.length)
      return keys.push(key) - 1
    },
    interned: (number) => (number > 0 ? keys[number] : undefined),
  }
}
