/**
 * The module whose exports the arrows of arrows.test.support.ts consist of.
 *
 * Hosts import it, and the tests too: its functions are declared here, once for all.
 */
import { readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { exported, lift } from '../arrow/index.ts'
import { currentTask, currentTrace } from '../zone/index.ts'
import { ScoreError, until } from './scores.test.support.ts'

const here = <Fn extends Function>(fn: Fn): Fn => exported(import.meta.url, fn)
const factor = Number('2')

export const parse = here(function parse(text: string): unknown {
  return JSON.parse(text)
})
export const nameOf = here(function nameOf(thrown: unknown): string {
  return (thrown as Error).name
})
export const oddly = here(function oddly(): unknown {
  return { code: 'ODD', fn: () => 1 }
})
/** Uses its module. */
export const doubled = here(function doubled(x: number): number {
  return x * factor
})
export const plus = here(function plus(x: number): number {
  return x + 1
})
export const isSmall = here(function isSmall(x: number): boolean {
  return x < 100
})
export const sum = here(function sum(one: number, other: number): number {
  return one + other
})
export const doubling = here(function doubling() {
  return lift(doubled)
})
export const slowly = here(async function slowly(x: number): Promise<number> {
  return x
})
export const inFiber = here(function* inFiber(x: number): Generator<never, number> {
  return x + factor
})
export const broken = here(function broken(code: string): never {
  throw new ScoreError(code, { cause: new RangeError('too much') })
})
export const isRemote = here(function isRemote(): boolean {
  return !isMainThread
})
export const traceHere = here(function traceHere(): unknown {
  return currentTrace()
})
/** Ends when it is interrupted. */
export const wait = here(function wait(
  _: unknown,
  { signal }: { readonly signal: AbortSignal },
): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
})
/** Ends when a file of that name is there. */
export const held = here(async function held(file: string): Promise<number> {
  return readFileSync(await until(file)).length
})
export const leftMs = here(function leftMs(): number | undefined {
  return currentTask()?.remainingMs
})
export const rows = here(function* rows(): Generator<number> {
  yield 1
})
/** Not declared. */
export const own = (x: number): number => x
