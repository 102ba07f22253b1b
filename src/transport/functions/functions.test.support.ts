/**
 * What the tests of functions share: a function as another thread has it, and the error of a refused one.
 *
 * Not a test itself.
 */
/* oxlint-disable no-extraneous-class -- the forms that nobody should write are what is tested here */
import assert from 'node:assert/strict'
import { FunctionError, type FunctionCodes } from './function-errors.ts'
import { functionByNumber, functionNumber } from './functions.ts'

export const outer = 1

/** The function as another thread would have it. */
export function far<Fn extends Function>(fn: Fn): Fn {
  const made = functionByNumber(functionNumber(fn))
  assert.equal(typeof made, 'function')
  assert.notEqual(made, fn)
  return made as Fn
}

/** Calls with their expected results, in this thread and in another; the two are compared too. */
export function same<Args extends unknown[]>(fn: (...args: Args) => unknown, ...args: Args): void {
  assert.deepEqual(far(fn)(...args), fn(...args))
}

export class Plain extends Object {
  static twice(x: number): number {
    return x * 2
  }
  m(x: number): number {
    return x + 1
  }
  get g(): number {
    return 9
  }
  set g(v: number) {
    ;(this as unknown as { v: number }).v = v
  }
  async am(x: number): Promise<number> {
    return x + 2
  }
  *gm(x: number): Generator<number> {
    yield x
  }
  [Symbol.iterator](): number {
    return 3
  }
  ['computed ' + String(1)](): number {
    return 4
  }
  'a name'(): number {
    return 5
  }
  tied(): string {
    return super.toString()
  }
  #secret = 7
  shows(): number {
    return this.#secret
  }
  asks(other: object): boolean {
    return #secret in other
  }
  #hidden(x: number): number {
    return x + 6
  }
  static hidden(one: Plain): Function {
    return one.#hidden
  }
  field = (): unknown => this.field
}

export const accessor = (name: string, kind: 'get' | 'set'): Function =>
  Object.getOwnPropertyDescriptor(Plain.prototype, name)?.[kind] as Function

/** The first location in the stack of what `fn` throws. */
export function line(fn: () => void): string {
  try {
    fn()
  } catch (error) {
    const locations = (error as Error).stack?.match(/[^(\s]+:\d+:\d+/g) ?? []
    return locations[0] as string
  }
  assert.fail('it does not throw')
}

export function refusal(fn: Function): FunctionError {
  try {
    functionNumber(fn)
  } catch (error) {
    assert.ok(error instanceof FunctionError, String(error))
    return error
  }
  assert.fail(`accepted: ${String(fn)}`)
}

/** Check the code, and that the sentence names every word. */
export function refused(fn: Function, code: keyof FunctionCodes, ...words: string[]): void {
  const error = refusal(fn)
  assert.equal(error.code, code, error.message)
  for (const word of words) assert.ok(error.message.includes(word), `${error.message} does not name ${word}`)
}
