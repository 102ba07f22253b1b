/**
 * What every pool looks like to the bench: open with so many threads, call by name, close.
 *
 * One process holds one contender only, so no contender pays for another's threads, garbage or call sites.
 */
import type { Work } from './work.ts'

/** Settings that a condition fixes. */
export interface PoolSettings {
  readonly threads: number
  /** False: idle threads must sleep at once. Pools without such a setting ignore it. */
  readonly spin: boolean
}

/** What giving up an endless loop took, in ms since the abort. */
export interface Abandoned {
  readonly goneMs: number
  readonly nextMs: number
}

/** An open pool. */
export interface Pool {
  /** One call of `nothing` by its name. */
  readonly nothing: () => PromiseLike<unknown>
  /** The same as a function written at the call, a fresh function object each time; absent: not offered. */
  readonly anonymous?: () => PromiseLike<unknown>
  /** The same with one function object for all calls. */
  readonly reused?: () => PromiseLike<unknown>
  call(name: keyof Work, input: unknown): PromiseLike<unknown>
  /** A function of joins.ts, for pools whose tasks can fork; absent: not offered. */
  joins?(name: string, input: unknown): PromiseLike<unknown>
  /**
   * On one worker of its own, give up a call that loops for ever while another one waits: from then on, how
   * long until the loop's thread has ended, and until the other's answer is there. Absent: not offered.
   */
  abandon?(graceMs: number): Promise<Abandoned>
  /** The value inside what a call gave. */
  valueOf(given: unknown): unknown
  close(): Promise<void>
}

/** A contender. */
export interface Contender {
  readonly name: string
  /** Its settings, in words, for the definitions. */
  readonly settings: string
  /** Package that it opens, loaded before any clock starts; absent: none. */
  readonly package?: string
  open(settings: PoolSettings): Promise<Pool>
}

/** For pools whose calls give the value itself. */
export function asItIs(given: unknown): unknown {
  return given
}
