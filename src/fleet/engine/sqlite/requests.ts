/**
 * What can be asked of the thread that has a file, and what it results in.
 *
 * Both travel as they are from thread to thread, so they are numbers, strings and bytes.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { Entry, Rank, TakeOptions } from '../engine.ts'
import type { BoundPaging, Lent, Refusal } from './tables.ts'

/** A lent item, and which lending of it. */
export type Item = readonly [seq: number, attempt: number]

/** What can be asked, with its arguments. */
export interface Requests {
  openQueue: [name: string]
  add: [
    queue: string,
    id: string,
    bytes: Uint8Array,
    rank: Rank,
    insteadMs?: number | undefined,
    unless?: string | undefined,
    isWatched?: boolean,
  ]
  find: [queue: string, id: string]
  pageItems: [queue: string, paging: BoundPaging, isLent: boolean]
  remove: [queue: string, id: string, addedMs: number | undefined]
  count: [queue: string]
  queues: []
  extend: [seq: number, attempt: number, leaseMs: number]
  done: [seq: number, attempt: number]
  again: [seq: number, attempt: number, delayMs: number]
  take: [id: number, queue: string, options: TakeOptions]
  endTake: [id: number]
  openStore: [name: string, ttlMs: number]
  get: [store: string, key: string]
  getObject: [store: string, key: string, bytesMax: number]
  put: [
    store: string,
    key: string,
    bytes: Uint8Array | undefined,
    revision: number | undefined,
    ttlMs: number,
    done?: Item | undefined,
  ]
  pageValues: [store: string, paging: BoundPaging]
  last: [store: string]
  valuesIn: [store: string]
  watch: [id: number, store: string, isNow: boolean, key: string | undefined]
  endWatch: [id: number]
}
export type Name = keyof Requests
export type Request<Asked extends Name = Name> = {
  [Each in Asked]: readonly [id: number, name: Each, ...args: Requests[Each]]
}[Asked]

/** What a group results in, in the order in which it is to be received: entries, leases, replies. */
export interface Outcome {
  readonly entries: (readonly [watch: number, entry: Entry])[]
  readonly leases: (readonly [take: number, lent: Lent])[]
  readonly replies: (readonly [id: number, value: unknown, failure?: Refusal])[]
  /** Watches that have ended by themselves. */
  readonly over: number[]
  /** Why nothing more can be done. */
  fatal?: Refusal
}

export const nothing = (): Outcome => ({ entries: [], leases: [], replies: [], over: [] })

/** Those after which the disk is waited for, and those that change something. */
export const DURABLE: ReadonlySet<Name> = new Set(['openQueue', 'add', 'remove', 'openStore', 'put'])
export const WRITES: ReadonlySet<Name> = new Set([...DURABLE, 'extend', 'done', 'again'])
/** Those after which an item may be lent. */
export const LENDS: ReadonlySet<Name> = new Set(['add', 'remove', 'done', 'again', 'take'])
