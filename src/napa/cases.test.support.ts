/**
 * What a case is: the counterpart of one test of napajs's own, written anew after its documentation.
 *
 * napajs runs most of them from two threads (`node`, a zone) towards two zones; so do these.
 */
import assert from 'node:assert/strict'
import * as napa from './index.ts'
import type { AnyFunction, Unchecked } from './values.ts'

/** One of the 195; `needs` is why it cannot run here. */
export interface Case {
  readonly name: string
  readonly run?: () => unknown
  readonly needs?: string
}

/** The functions that cases call by name. */
export const WORKER = new URL('./worker.test.support.js', import.meta.url).href
/** The zones of the cases. */
export const HOME = 'napa-home'
export const OTHER = 'napa-other'
/** The zone of calls that are too late. */
export const LATE_ZONE = 'napa-late'

type From = 'node' | 'zone'
type Method = 'execute' | 'broadcast' | 'broadcastSync'

/** Calls a method of a zone in this thread, or in a worker of HOME. Resolves to the value. */
export async function callFrom(
  from: From,
  to: string,
  method: Method,
  ...args: unknown[]
): Promise<Unchecked> {
  if (from === 'zone') {
    const result = await napa.zone.get(HOME).execute(WORKER, 'relay', [to, method, ...args])
    return result.value
  }
  const zone = napa.zone.get(to) as unknown as Record<Method, (...all: unknown[]) => Unchecked>
  const result = await zone[method](...args)
  return result instanceof napa.zone.Result ? result.value : undefined
}

/** Each direction: from `node` to itself and a zone, from a zone to another one and back. */
export const DIRECTIONS: readonly (readonly [From, string])[] = [
  ['node', 'node'],
  ['node', HOME],
  ['zone', OTHER],
  ['zone', 'node'],
]

/** A case for each direction. */
export function each(
  what: string,
  run: (call: (method: Method, ...args: unknown[]) => Promise<Unchecked>, at: number) => unknown,
  directions = DIRECTIONS,
): Case[] {
  return directions.map(([from, to], at) => ({
    name: `${from} -> ${to}: ${what}`,
    run: () => run((method, ...args) => callFrom(from, to, method, ...args), at),
  }))
}

/** A case that runs a function in a worker of HOME; it asserts there. */
export function within(name: string, fn: AnyFunction, args: Unchecked[] = []): Case {
  return { name, run: () => napa.zone.get(HOME).execute(fn, args) }
}

/** Compares values that may be anything. */
export function same(actual: Unchecked, expected: Unchecked): void {
  assert.deepEqual(actual, expected)
}
