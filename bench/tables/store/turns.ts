/**
 * What a thread of a contender does when it is its turn, and how the two threads of one agree on when.
 *
 * The second thread waits on a shared word; both begin together and count what they do until the time is
 * over.
 */
import { ownSlice } from '../transport/slice.ts'
import type { Calls } from './contenders.ts'

/** What a thread does. */
export type Doing = 'get' | 'set'

/** Words of the shared memory: turn, what, which keys, ms; doubles: ns per operation. */
export const Word = { turn: 0, doing: 1, keys: 2, ms: 3, done: 4 } as const
/** Its size, and where its double lies. */
export const SHARED_BYTES = 64
export const NS_AT = 4

/** Keys of a thread: 64 of its own, or one that both use. */
export function keysOf(thread: number, isSame: boolean): string[] {
  return Array.from({ length: 64 }, (_, index) => (isSame ? 'same' : `key ${thread} ${index}`))
}

/** The functions of a thread that are timed, one of its own for each, so that no call site is shared. */
export function doings(
  calls: Calls,
  values: readonly unknown[],
  thread: number,
): Record<`${Doing} ${'same' | 'different'}`, (index: number) => unknown> {
  const [same, own] = [keysOf(thread, true), keysOf(thread, false)]
  return {
    'get same': (index) => calls.get(same[index]),
    'get different': (index) => calls.get(own[index]),
    'set same': (index) => calls.set(same[index], values[index]),
    'set different': (index) => calls.set(own[index], values[index]),
  }
}

type Run = (index: number) => unknown
const slices = new Map<Run, (run: Run, ms: number) => number>()

/** ns per call, in a loop that no other function runs in. */
export function timed(run: Run, ms: number): number {
  let slice = slices.get(run)
  if (slice === undefined) slices.set(run, (slice = ownSlice()))
  return slice(run, ms)
}
