/**
 * The limits of a host's jobs: how many run at once, and how many begin in a span, over all hosts.
 *
 * A job that may not begin is returned to the queue, and takes no slot of the host. Nobody asks again and
 * again: the host whose job ends calls the next one (limit-state.ts), which is lent at once then. A slot is a
 * lease. Its host extends it, and ends the job by its own clock when that is not confirmed, before others
 * take the slot for free: so a host that dies or is cut off holds it for a lease and a half, and no limit is
 * exceeded meanwhile. All that a host changes of one limit at once is one write.
 */
import type { Clock, End, Engine, KeyValue } from '../engine/engine.ts'
import { FleetError, hasCode } from '../errors.ts'
import { opened } from '../certainly.ts'
import { readParts, written } from '../wire.ts'
import {
  type Change,
  type Entering,
  type JobLimit,
  type LimitState,
  calledBy,
  entered,
  extended,
  left,
  readLimit,
  writeLimit,
} from './limit-state.ts'

/** A limit that no job has used for so long, and the span of its rate, is forgotten. */
const STATE_MS = 86_400_000
/** So is a turn. */
const TURN_MS = 30 * STATE_MS
/** How many times a slot is extended in the span of a lease. */
const EXTENSIONS = 3

/** What limits need of their host. */
export interface LimiterHost {
  readonly engine: Engine
  readonly zone: string
  readonly id: string
  readonly leaseMs: number
  /** Where limits are kept. */
  readonly limits: string
  certainly<Value>(work: () => Promise<Value>): Promise<Value>
  /** Has a job lent now whose turn was called; false: it does not exist any more. */
  wake(key: string, turn: number): Promise<boolean>
}

/** How long a job waits if nobody wakes it, and whether it has drawn a turn. */
export interface Refused {
  readonly waitMs: number
  readonly isInLine: boolean
}

/** A job that may begin, if its limit allows it. */
export interface Limited {
  readonly key: string
  readonly limit: JobLimit
  /** As of {@link Entering}. */
  readonly turn: number
  readonly isFirst: boolean
  /** The server's time, in ms since 1970. */
  serverMs(): number
  /** Its slot is lost: it has to end. */
  lost(why: FleetError): void
}

export class Limiter {
  readonly #host: LimiterHost
  readonly #values: () => Promise<KeyValue>
  /** Of the limits that this host uses now, by whose they are. */
  readonly #shared = new Map<string, HostLimit>()
  #settle: () => void = () => {}
  #count = 0

  constructor(host: LimiterHost) {
    const { engine, limits, certainly } = host
    this.#host = host
    const values = opened(() => engine.keyValue(limits, { ttlMs: 0 }))
    this.#values = () => certainly(values)
  }

  /**
   * Resolves with what ends the slot of a job that may begin, or with how long it waits.
   * @throws {FleetError} `FLEET_CLOSED`, and what is not confirmed until the host has left.
   */
  async enter(limited: Limited): Promise<(() => Promise<void>) | Refused> {
    const { key, limit, isFirst, serverMs, lost } = limited
    const { leaseMs } = this.#host
    const { clock } = this.#host.engine
    const shared = await this.#used(limit)
    const id = `${this.#host.id} ${++this.#count}`
    try {
      for (let { turn } = limited; ;) {
        let sentMs = 0
        const verdict = await shared.change(serverMs, limit, (state, change) => {
          sentMs = clock.nowMs()
          return entered(state, { key, id, turn, isFirst } satisfies Entering, change)
        })
        if (verdict.waitMs === undefined) {
          const end = this.#begun(shared, { id, sentMs, limited, lost })
          if (clock.nowMs() < sentMs + leaseMs) return end
          // It was confirmed so late that others may have it.
          void end()
          return { waitMs: 1, isInLine: false }
        }
        if (verdict.turn === 0) return { waitMs: Math.ceil(verdict.waitMs), isInLine: false }
        await shared.draw(verdict.turn, key)
        // It may have been called before its job could be read.
        if (!(await shared.isCalled(verdict.turn))) return { waitMs: verdict.waitMs, isInLine: true }
        turn = verdict.turn
      }
    } finally {
      shared.unuse()
    }
  }

  /** The limit of a job, which has one user more. */
  async #used({ per }: JobLimit): Promise<HostLimit> {
    const values = await this.#values()
    const unused = (): void => {
      this.#shared.delete(per)
      if (this.#shared.size === 0) this.#settle()
    }
    const shared = this.#shared.get(per) ?? new HostLimit(this.#host, values, per, unused)
    this.#shared.set(per, shared)
    shared.use()
    return shared
  }

  #begun(
    shared: HostLimit,
    { id, sentMs, limited, lost }: Slot & { readonly limited: Limited },
  ): () => Promise<void> {
    const { key, limit, serverMs } = limited
    if (limit.concurrency === 0) return async () => {}
    shared.use()
    shared.hold(serverMs, limit, { id, sentMs, lost })
    let ended: Promise<void> | undefined
    return () => {
      if (ended !== undefined) return ended
      shared.drop(id)
      return (ended = shared
        .change(serverMs, limit, (state, change) => left(state, key, id, change))
        .catch(() => {}) // the slot is over when it is not extended
        .finally(() => shared.unuse()))
    }
  }

  /** Whether others wait for a slot, as far as this host has read. */
  isAwaited({ per }: JobLimit): boolean {
    return this.#shared.get(per)?.isAwaited === true
  }

  /** Resolves when no slot is held, and the jobs that this host has called are woken. */
  async settled(): Promise<void> {
    if (this.#shared.size > 0) await new Promise<void>((resolve) => (this.#settle = resolve))
  }
}

/** A slot that a job of this host has. */
interface Slot {
  readonly id: string
  /** When it was asked for, or to be extended, by this machine's clock. */
  readonly sentMs: number
  lost(why: FleetError): void
}

type Work<Result> = (state: LimitState, change: Change) => readonly [state: LimitState, result: Result]

/** What waits to be written. */
interface Waiting {
  readonly serverMs: () => number
  readonly limit: JobLimit
  readonly work: Work<unknown>
  resolve(result: never): void
  reject(why: unknown): void
}

/** One limit, as this host uses it. */
class HostLimit {
  #users = 0
  readonly #host: LimiterHost
  readonly #clock: Clock
  readonly #values: KeyValue
  readonly #per: string
  readonly #unused: () => void
  readonly #waiting: Waiting[] = []
  #isWriting = false
  /** As it was written or read last. */
  #entry: { readonly state: LimitState; readonly revision: number } | undefined
  /** Turns that were called, whose jobs are being woken. */
  readonly #calling = new Set<number>()
  readonly #slots = new Map<string, { endLosing: End; slot: Slot }>()
  #endExtending: End | undefined

  /** @param unused Called when nobody uses it any more. */
  constructor(host: LimiterHost, values: KeyValue, per: string, unused: () => void) {
    this.#unused = unused
    this.#host = host
    this.#clock = host.engine.clock
    this.#values = values
    this.#per = per
  }

  get isAwaited(): boolean {
    const { held = [], first = 0, next = 0 } = this.#entry?.state ?? {}
    return first < next || held.some(([of]) => typeof of === 'number')
  }

  use(): void {
    this.#users++
  }

  unuse(): void {
    if (--this.#users === 0) this.#unused()
  }

  /** Change what is shared, with all that is to be changed at the same time. */
  change<Result>(serverMs: () => number, limit: JobLimit, work: Work<Result>): Promise<Result> {
    const changed = new Promise<Result>((resolve, reject) =>
      this.#waiting.push({ serverMs, limit, work, resolve, reject }),
    )
    if (!this.#isWriting) void this.#write()
    return changed
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const all = this.#waiting.splice(0)
      try {
        const results = await this.#written(all)
        for (const [index, { resolve }] of all.entries()) resolve(results[index] as never)
        const [{ serverMs, limit }] = all
        this.#callAll(serverMs, limit)
      } catch (error) {
        for (const { reject } of all) reject(error)
      }
    }
    this.#isWriting = false
  }

  async #written(all: readonly Waiting[]): Promise<unknown[]> {
    const { id: by, leaseMs, certainly } = this.#host
    for (;;) {
      const { state: from, revision } = (this.#entry ??= await this.#read())
      let state = from
      const results = all.map(({ serverMs, limit, work }) => {
        const [changed, result] = work(state, { by, limit, leaseMs, nowMs: serverMs() })
        state = changed
        return result
      })
      const ttlMs = STATE_MS + Math.max(...all.map(({ limit }) => limit.perMs))
      const put = (): Promise<number> =>
        this.#values.put(this.#stateKey, writeLimit(state), { revision, ttlMs })
      try {
        this.#entry = { state, revision: await certainly(put) }
        return results
      } catch (error) {
        this.#entry = undefined
        if (!hasCode(error, 'FLEET_CONFLICT')) throw error
      }
    }
  }

  async #read(): Promise<{ readonly state: LimitState; readonly revision: number }> {
    const entry = await this.#host.certainly(() => this.#values.get(this.#stateKey))
    return { state: readLimit(entry?.bytes), revision: entry?.revision ?? 0 }
  }

  get #stateKey(): string {
    return `limit ${this.#per}`
  }

  #turnKey(turn: number): string {
    return `turn ${turn} ${this.#per}`
  }

  /** Write whose turn it is. */
  async draw(turn: number, key: string): Promise<void> {
    const put = (): Promise<number> =>
      this.#values.put(this.#turnKey(turn), written('turn', key), { ttlMs: TURN_MS })
    await this.#host.certainly(put)
  }

  /** Whether a turn was called, by any host. */
  async isCalled(turn: number): Promise<boolean> {
    const { state } = await this.#read()
    return state.first > turn
  }

  /** Wake the jobs of turns that this host has called. */
  #callAll(serverMs: () => number, limit: JobLimit): void {
    const { state } = this.#entry!
    for (const turn of calledBy(state, this.#host.id)) {
      if (this.#calling.has(turn)) continue
      this.#calling.add(turn)
      this.use()
      const drop = (): Promise<void> =>
        this.change(serverMs, limit, (from, change) => left(from, turn, change.by, change))
      // Without this host it is called again, when its slot is over.
      void this.#call(turn, drop)
        .catch(() => {})
        .finally(() => this.unuse())
    }
    const called = new Set(calledBy(state, this.#host.id))
    for (const turn of this.#calling) if (!called.has(turn)) this.#calling.delete(turn)
  }

  async #call(turn: number, drop: () => Promise<void>): Promise<void> {
    const { certainly } = this.#host
    const entry = await certainly(() => this.#values.get(this.#turnKey(turn)))
    const [kind, key] = (entry?.bytes && readParts(entry.bytes)) ?? []
    // Its host writes it now, and looks then, or was lost.
    if (entry === undefined) return
    const isThere = kind === 'turn' && (await this.#host.wake(String(key), turn))
    await Promise.all([
      isThere ? undefined : drop(),
      certainly(() => this.#values.delete(this.#turnKey(turn))),
    ])
  }

  /** A job of this host has a slot. */
  hold(serverMs: () => number, limit: JobLimit, slot: Slot): void {
    this.#slots.set(slot.id, { slot, endLosing: () => {} })
    this.#extendUntil(slot)
    this.#extendLater(serverMs, limit)
  }

  drop(id: string): void {
    this.#slots.get(id)?.endLosing()
    this.#slots.delete(id)
    if (this.#slots.size > 0) return
    this.#endExtending?.()
    this.#endExtending = undefined
  }

  #extendUntil(slot: Slot): void {
    const held = this.#slots.get(slot.id)
    held?.endLosing()
    const leftMs = slot.sentMs + this.#host.leaseMs - this.#clock.nowMs()
    const endLosing = this.#clock.after(Math.max(0, leftMs), () => this.#lose(slot))
    if (held !== undefined) this.#slots.set(slot.id, { slot, endLosing })
  }

  #lose({ id, lost }: Slot): void {
    const { zone, id: host } = this.#host
    const reason = 'its slot of a limit was not extended in time'
    if (this.#slots.has(id)) lost(new FleetError('HOST_LOST', { zone, host, reason }))
    this.drop(id)
  }

  #extendLater(serverMs: () => number, limit: JobLimit): void {
    this.#endExtending ??= this.#clock.after(this.#host.leaseMs / EXTENSIONS, () => {
      this.#endExtending = undefined
      // What is not confirmed in time is lost by the other timer.
      void this.#extend(serverMs, limit).catch(() => {})
    })
  }

  async #extend(serverMs: () => number, limit: JobLimit): Promise<void> {
    const ids = new Set(this.#slots.keys())
    let sentMs = 0
    const kept = await this.change(serverMs, limit, (state, change) => {
      sentMs = this.#clock.nowMs()
      return extended(state, ids, change)
    })
    for (const id of ids) {
      const held = this.#slots.get(id)
      if (held === undefined) continue
      if (kept.has(id)) this.#extendUntil({ ...held.slot, sentMs })
      else this.#lose(held.slot)
    }
    if (this.#slots.size > 0) this.#extendLater(serverMs, limit)
  }
}
