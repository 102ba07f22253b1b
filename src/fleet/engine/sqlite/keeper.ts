/**
 * One connection to a file: commits all that waits in one transaction, lends items and reports changes.
 *
 * It is synchronous, and is used by the thread that has the file (thread.ts). A group of requests is one
 * transaction. If it fails, each request is tried by itself, so one that does not fit fails alone. A group in
 * which something is added, written or removed is on disk when it is replied to. One that only lends and ends
 * items is not waited for: what a power cut takes of it is lent again, and its record decides.
 *
 * Nothing that is remembered here is changed before the commit.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import { realpathSync, statSync } from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Entry, TakeOptions } from '../engine.ts'
import { failureOf, isBusy, transaction, whenFree } from './failures.ts'
import { DURABLE, LENDS, type Outcome, type Request, WRITES, nothing } from './requests.ts'
import { MARK_MS, type Change, type Lent, Refusal, Tables } from './tables.ts'

interface Taker extends TakeOptions {
  readonly id: number
  readonly queue: string
}

interface Watcher {
  readonly store: string
  /** `undefined`: of all keys. */
  readonly key: string | undefined
}

/** By their number: what was written up to that revision they have, or do not ask for. */
type Watchers = Map<number, number>

/** Codes after which the file is left alone. */
const FATAL: ReadonlySet<unknown> = new Set(['FLEET_FILE_CORRUPT', 'FLEET_FILE_FOREIGN'])
const SWEEP_MS = 1000

/** Which file has a path; `undefined` where that is not to be found out. */
function nodeOf(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return `${found?.dev} ${found?.ino}`
  } catch {
    return undefined
  }
}

export class Keeper {
  readonly #db: DatabaseSync
  readonly #tables: Tables
  readonly #file: string
  readonly #path: string
  readonly #node: string | undefined
  readonly #nowMs: () => number
  readonly #takers = new Map<number, Taker>()
  /** What is lent here, by number. */
  readonly #lent = new Map<number, { readonly taker: number; readonly attempt: number; untilMs: number }>()
  readonly #watchers = new Map<number, Watcher>()
  readonly #watched = new Map<string, Map<string | undefined, Watchers>>()
  /** Changes up to this revision have been reported. */
  #reported = 0
  /** The last revision that this connection has committed. */
  #wrote = 0
  #lookedMs: number
  #mayLend = false
  #mayReport = false
  /** When a lending or a pause ends. */
  #dueMs = 0
  #sweepMs = 0
  #isDurable: boolean | undefined
  readonly #dataVersion: StatementSync
  #version: unknown

  constructor(db: DatabaseSync, file: string, nowMs: () => number) {
    this.#db = db
    this.#file = file
    this.#path = realpathSync(file)
    this.#node = nodeOf(this.#path)
    this.#nowMs = nowMs
    this.#tables = new Tables(db, nowMs)
    this.#dataVersion = db.prepare('PRAGMA data_version')
    this.#lookedMs = nowMs()
    this.#hasChanged()
  }

  /** Whether anybody waits for what others do. */
  get isWatching(): boolean {
    return this.#takers.size + this.#watchers.size > 0
  }

  /** All of these in one transaction, and what follows from them and from what others have done. */
  run(requests: readonly Request[]): Outcome {
    const outcome = nothing()
    const node = nodeOf(this.#path)
    if (node !== undefined && node !== this.#node) {
      // What is written from now on would be in no file that has the name, and lost with this process.
      const what = 'it was deleted, renamed or replaced while it was open'
      outcome.fatal = new Refusal('FLEET_FILE_CORRUPT', { file: this.#file, what })
      return outcome
    }
    this.#group(requests, outcome)
    if (outcome.fatal === undefined) this.#follow(outcome)
    return outcome
  }

  #group(requests: readonly Request[], outcome: Outcome): void {
    if (requests.length === 0) return
    const isWrite = requests.some(([, name]) => WRITES.has(name))
    const begun: (() => void)[] = []
    const { entries } = outcome
    try {
      const work = (): Outcome['replies'] => {
        begun.length = 0
        entries.length = 0
        return requests.map((request) => this.#reply(request, begun, entries))
      }
      const isDurable = requests.some(([, name]) => DURABLE.has(name))
      const replies = this.#transaction(isWrite, isDurable, work)
      outcome.replies.push(...replies)
      for (const begin of begun) begin()
      if (requests.some(([, name]) => LENDS.has(name))) this.#mayLend = true
      if (this.#watchers.size > 0) this.#noteWrites(requests, replies)
    } catch (error) {
      entries.length = 0
      if (requests.length > 1 && !isBusy(error)) return this.#apart(requests, outcome)
      for (const [id, name] of requests)
        outcome.replies.push([id, undefined, this.#failed(error, `${name} in ${this.#file}`, outcome)])
    }
  }

  /** What nobody here watches is not read again. */
  #noteWrites(requests: readonly Request[], replies: Outcome['replies']): void {
    for (const [index, [, name, store, key]] of requests.entries()) {
      if (name !== 'put') continue
      if (this.#whoWatch(store, key).length > 0) this.#mayReport = true
      this.#wrote = Math.max(this.#wrote, Number(replies[index][1] ?? 0))
    }
  }

  #whoWatch(store: string, key: string): Watchers[] {
    const keys = this.#watched.get(store)
    return [keys?.get(undefined), keys?.get(key)].filter((watchers) => watchers !== undefined)
  }

  #watch(id: number, store: string, key: string | undefined, after: number): void {
    if (this.#watchers.size === 0) {
      this.#reported = after
      this.#lookedMs = this.#nowMs()
    }
    this.#watchers.set(id, { store, key })
    const keys = this.#watched.get(store) ?? new Map<string | undefined, Watchers>()
    this.#watched.set(store, keys)
    const watchers = keys.get(key)
    if (watchers === undefined) keys.set(key, new Map([[id, after]]))
    else watchers.set(id, after)
  }

  #endWatch(id: number): void {
    const { store, key } = this.#watchers.get(id) ?? {}
    if (store === undefined || !this.#watchers.delete(id)) return
    const keys = this.#watched.get(store)!
    if (keys.get(key)!.delete(id) && keys.get(key)!.size === 0) keys.delete(key)
  }

  #apart(requests: readonly Request[], outcome: Outcome): void {
    for (const request of requests) {
      const own = nothing()
      this.#group([request], own)
      outcome.replies.push(...own.replies)
      outcome.entries.push(...own.entries)
      if (own.fatal !== undefined) outcome.fatal = own.fatal
    }
  }

  #failed(error: unknown, operation: string, outcome: Outcome): Refusal {
    const failure = failureOf(error, this.#file, operation)
    if (FATAL.has(failure.code)) outcome.fatal = failure
    return failure
  }

  #reply(request: Request, begun: (() => void)[], entries: Outcome['entries']): Outcome['replies'][number] {
    try {
      return [request[0], this.#do(request, begun, entries)]
    } catch (error) {
      if (error instanceof Refusal) return [request[0], undefined, error]
      throw error
    }
  }

  /** @param begun What is remembered after the commit. */
  #do(request: Request, begun: (() => void)[], entries: Outcome['entries']): unknown {
    const tables = this.#tables
    switch (request[1]) {
      case 'extend':
      case 'again':
      case 'done':
        return this.#lentChanges(request, begun)
      case 'add': {
        const [id, , queue, key, bytes, rank, insteadMs, unless, isWatched] = request
        const isAdded = tables.add(queue, key, bytes, rank, insteadMs, unless)
        if (isAdded && isWatched && unless !== undefined) {
          const after = tables.lastRevision()
          begun.push(() => this.#watch(id, unless, key, after))
        }
        return isAdded
      }
      case 'put': {
        const [id, , store, key, bytes, revision, ttlMs, item] = request
        const written = tables.put(store, key, bytes, revision, ttlMs)
        if (item !== undefined) this.#lentChanges([id, 'done', ...item], begun)
        return written
      }
      case 'take':
      case 'endTake':
      case 'watch':
      case 'endWatch':
        return this.#waits(request, begun, entries)
      default: {
        // The tables have an operation of that name, with these arguments.
        const [, name, ...args] = request
        return Reflect.apply(tables[name], tables, args) as unknown
      }
    }
  }

  #lentChanges(request: Request<'extend' | 'again' | 'done'>, begun: (() => void)[]): void {
    const [, name, seq, attempt, ms = 0] = request
    const untilMs = name === 'again' && ms <= 0 ? 0 : this.#nowMs() + ms
    // Done, as well, when it has been lent to somebody else by now.
    const isOurs = name === 'done' || this.#tables.lendUntil(seq, attempt, untilMs)
    if (name === 'done') this.#tables.done(seq)
    begun.push(() => {
      const lent = this.#lent.get(seq)
      if (lent?.attempt !== attempt) return
      if (name === 'extend' && isOurs) lent.untilMs = untilMs
      else this.#mayLend = this.#lent.delete(seq)
      if (name !== 'done' && untilMs > 0) this.#dueMs = Math.min(this.#dueMs, untilMs)
    })
  }

  #waits(
    request: Request<'take' | 'endTake' | 'watch' | 'endWatch'>,
    begun: (() => void)[],
    entries: Outcome['entries'],
  ): void {
    if (request[1] === 'take') {
      const [, , id, queue, options] = request
      begun.push(() => {
        this.#takers.set(id, { id, queue, ...options })
        this.#dueMs = 0
      })
    } else if (request[1] === 'endTake') begun.push(() => this.#takers.delete(request[2]))
    else if (request[1] === 'endWatch') begun.push(() => this.#endWatch(request[2]))
    else {
      const [, , id, store, isNow, key] = request
      const after = this.#tables.lastRevision()
      if (!isNow) for (const entry of this.#tables.allOf(store, key)) entries.push([id, entry])
      begun.push(() => {
        this.#watch(id, store, key, after)
        this.#mayReport = true
      })
    }
  }

  /** Lend what may be lent, and report what was written, by anybody. */
  #follow(outcome: Outcome): void {
    const nowMs = this.#nowMs()
    try {
      if (this.#hasChanged()) {
        this.#mayReport = this.#mayLend = true
        this.#dueMs = 0
      }
      // Deletions may be forgotten that these have not received.
      if (nowMs - this.#lookedMs > MARK_MS) {
        outcome.over.push(...this.#watchers.keys())
        this.#watchers.clear()
        this.#watched.clear()
      }
      this.#lookedMs = nowMs
      if (!this.#mayReport) this.#reported = Math.max(this.#reported, this.#wrote)
      else if (this.#watchers.size > 0) this.#report(outcome)
      if (this.#takers.size > 0 && (this.#mayLend || nowMs >= this.#dueMs)) this.#lend(nowMs, outcome)
    } catch (error) {
      // Nobody has asked for this, and it is tried again at the next look.
      this.#failed(error, `looking at ${this.#file}`, outcome)
    }
  }

  /** Whether another connection has committed since the last look. */
  #hasChanged(): boolean {
    const version = this.#dataVersion.get()?.['data_version']
    const isChanged = version !== this.#version
    this.#version = version
    return isChanged
  }

  #report({ entries }: Outcome): void {
    const [found, reported] = this.#transaction(false, false, () => {
      const all: (readonly [number, Entry])[] = []
      let last = this.#reported
      for (let changes: Change[]; (changes = this.#tables.changesSince(last)).length > 0;) {
        for (const change of changes) this.#entriesOf(change, all)
        last = changes.at(-1)!.revision
      }
      return [all, last] as const
    })
    for (const each of found) entries.push(each)
    this.#reported = reported
    this.#mayReport = false
  }

  #entriesOf(change: Change, found: (readonly [number, Entry])[]): void {
    let entry: Entry | undefined
    for (const watchers of this.#whoWatch(change.store, change.key))
      for (const [id, after] of watchers)
        if (change.revision > after) found.push([id, (entry ??= this.#tables.written(change))])
  }

  #lend(nowMs: number, { leases }: Outcome): void {
    const isDue = nowMs >= this.#dueMs
    const free = this.#free(nowMs)
    const isWanted = free.some(([{ queue }]) => this.#tables.hasReady(queue))
    if (isDue || isWanted) {
      const lent = this.#transaction(true, false, () => {
        if (isDue) this.#tables.promote()
        return this.#lendTo(free, nowMs)
      })
      for (const [taker, item, untilMs] of lent) {
        this.#lent.set(item.seq, { taker: taker.id, attempt: item.attempt, untilMs })
        leases.push([taker.id, item])
      }
      this.#dueMs = this.#tables.dueMs()
    }
    this.#mayLend = false
  }

  /** Takers with room for so many. What is lent to nobody any more is forgotten. */
  #free(nowMs: number): (readonly [Taker, number])[] {
    const counts = new Map<number, number>()
    for (const [seq, { taker, untilMs }] of this.#lent)
      if (untilMs <= nowMs) this.#lent.delete(seq)
      else counts.set(taker, (counts.get(taker) ?? 0) + 1)
    const all = [...this.#takers.values()]
    const free = all.map((taker) => [taker, taker.leasesMax - (counts.get(taker.id) ?? 0)] as const)
    return free.filter(([, room]) => room > 0)
  }

  /** All that it has room for to the one taker of a queue, and of several one item to each in turn. */
  #lendTo(free: readonly (readonly [Taker, number])[], nowMs: number): (readonly [Taker, Lent, number])[] {
    const lent: (readonly [Taker, Lent, number])[] = []
    const isAlone = new Set(free.map(([{ queue }]) => queue)).size === free.length
    for (let turn = 0, left = free; left.length > 0; turn++) {
      left = left.filter(([taker, room]) => {
        const count = isAlone ? room : 1
        const untilMs = nowMs + taker.leaseMs
        const items = turn < room ? this.#tables.lend(taker.queue, count, untilMs, taker.values) : []
        for (const item of items) lent.push([taker, item, untilMs])
        return !isAlone && items.length > 0
      })
    }
    return lent
  }

  /** What is lent here is lent again at once. */
  close(): void {
    try {
      this.#transaction(true, false, () => {
        for (const [seq, { attempt }] of this.#lent) this.#tables.lendUntil(seq, attempt, 0)
      })
    } catch {
      // It is lent again when its time is over.
    }
    this.#db.close()
  }

  /** @throws What SQLite refuses; nothing is changed then. */
  #transaction<Value>(isWrite: boolean, isDurable: boolean, work: () => Value): Value {
    return whenFree(this.#nowMs, () => {
      if (isWrite) this.#sync(isDurable)
      this.#tables.begin()
      return transaction(this.#db, isWrite, () => {
        const value = work()
        this.#tables.settle()
        if (isDurable) this.#sweep()
        return value
      })
    })
  }

  #sync(isDurable: boolean): void {
    if (this.#isDurable === isDurable) return
    this.#db.exec(`PRAGMA synchronous = ${isDurable ? 'FULL' : 'NORMAL'}`)
    this.#isDurable = isDurable
  }

  #sweep(): void {
    const nowMs = this.#nowMs()
    if (nowMs < this.#sweepMs) return
    if (!this.#tables.sweep()) this.#sweepMs = nowMs + SWEEP_MS
  }
}
