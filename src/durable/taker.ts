/**
 * Takes the runs of a definition from their queue, as many as this process may have, and has a list of them.
 *
 * A lost lease may be lent to this process again: its run goes on with the new one.
 */
import { type End, type Entry, type Lease, Limiter, certainly } from '../fleet/internal.ts'
import type { Durable } from './definition.ts'
import { call } from './heads.ts'
import { HeldRun } from './held.ts'
import type { Running } from './holder.ts'
import { Releases } from './releases.ts'
import type { Children, OwnRoom } from './room.ts'
import { limitsName } from './records.ts'
import { LOOK_MS, type Rooms, opening } from './rooms.ts'
import type { Here } from './run.ts'

/** Delay of an item whose run this process has not finished leaving. */
const SAME_KEY_MS = 50

export interface Settings {
  readonly runsMax: number
  readonly leaseMs: number
  readonly idleMs: number
  readonly check?: boolean
  readonly release?: string | undefined
}

/** The runs of a definition, as this process has them. */
export class Taker implements Here {
  readonly room: OwnRoom
  readonly stages: readonly string[]
  readonly held = new Map<string, HeldRun>()
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #ends: (() => void)[] = []
  #isClosing = false
  #isAbandoned = false
  #idle: () => void = () => {}

  private constructor(room: OwnRoom, stages: readonly string[] = []) {
    this.room = room
    this.stages = stages
  }

  static async open({ name, body, stages }: Durable, settings: Settings, rooms: Rooms): Promise<Taker> {
    const { leaseMs, idleMs, runsMax, check = false, release } = settings
    const children = (of: string): Promise<Children> => rooms.children(of)
    const shared = await rooms.of(name)
    let isAbandoned = (): boolean => false
    const goesOn = (): boolean => !isAbandoned()
    const surely = <Value>(work: () => Promise<Value>): Promise<Value> =>
      certainly(shared.engine, work, goesOn)
    const limiter = new Limiter({
      ...{ engine: shared.engine, zone: name, id: crypto.randomUUID(), leaseMs, limits: limitsName(name) },
      certainly: surely,
      wake: (key, turn) => surely(() => call(shared, key, turn)),
    })
    const isOffered = release !== undefined && runsMax > 0
    const releases = isOffered ? await Releases.open(release, shared, { leaseMs, goesOn }) : undefined
    const own = { body, leaseMs, idleMs, check, children, limiter, releases }
    const taker = new Taker({ ...shared, ...own }, stages)
    isAbandoned = () => taker.#isAbandoned
    const { engine, heads, boxes, queue } = taker.room
    const changed = ({ key }: Entry): void => taker.#changed(key)
    try {
      for (const kept of [heads, boxes])
        taker.#ends.push(await opening(engine, () => kept.watch(changed, { from: 'now' })))
      const lent = (lease: Lease): void => void taker.#lent(lease)
      if (runsMax > 0)
        taker.#ends.push(await opening(engine, () => queue.take(lent, { leasesMax: runsMax, leaseMs })))
    } catch (error) {
      for (const end of taker.#ends) end()
      await releases?.end()
      throw error
    }
    // Nothing that runs can be recorded any more.
    void engine.ended.then(() => taker.#abandon())
    return taker
  }

  #abandon(): void {
    this.#isClosing = true
    this.#isAbandoned = true
    for (const run of this.held.values()) run.abandon()
  }

  #changed(key: string): void {
    this.held.get(key)?.check()
    const listeners = this.#listeners.get(key)
    this.#listeners.delete(key)
    for (const listener of listeners ?? []) listener()
  }

  running(key: string): Running | undefined {
    return this.held.get(key)?.running
  }

  /** Resolves when the head may have changed. */
  changed(key: string): Promise<void> {
    return new Promise((resolve) => {
      const all = this.#listeners.get(key) ?? new Set()
      this.#listeners.set(key, all)
      const settle = (): void => {
        end()
        all.delete(settle)
        if (all.size === 0 && this.#listeners.get(key) === all) this.#listeners.delete(key)
        resolve()
      }
      const end = this.room.engine.clock.after(LOOK_MS, settle)
      all.add(settle)
    })
  }

  async #lent(lease: Lease): Promise<void> {
    const running = this.held.get(lease.id)
    if (this.#isClosing) return lease.again(0)
    if (running !== undefined) return (await running.adopt(lease)) ? undefined : lease.again(SAME_KEY_MS)
    const run = new HeldRun(this.room, lease)
    this.held.set(lease.id, run)
    try {
      await run.run()
    } finally {
      this.held.delete(lease.id)
      if (this.held.size === 0) this.#idle()
    }
  }

  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true
    for (const end of this.#ends) end()
    const idle = new Promise<void>((resolve) => (this.#idle = resolve))
    for (const run of this.held.values()) run.close()
    let end: End = () => {}
    const late = new Promise<void>((resolve) => {
      end = this.room.engine.clock.after(timeoutMs, () => {
        this.#abandon()
        resolve()
      })
    })
    await Promise.race([this.room.releases?.end(), late])
    if (this.held.size > 0) await idle
    await this.room.limiter.settled()
    end()
  }
}
