/**
 * What keeps the runs of definitions that this process starts or reports to, and need not have itself.
 *
 * Each is opened once. Children are started here, and their ends reported.
 */
import { meters } from '../base/index.ts'
import { type Engine, type KeyValue, certainly, opened, runsQueueName } from '../fleet/internal.ts'
import { RunError, readable } from './errors.ts'
import { begin } from './heads.ts'
import {
  type Head,
  type Parent,
  boxesName,
  exposedName,
  hasEnded,
  headsName,
  holdersName,
  journalName,
  readHead,
} from './records.ts'
import type { Children, ReportedRun, Room, Starting } from './room.ts'
import { Run } from './run.ts'
import { keptOf } from './values.ts'

/** How often a head is read while its end is waited for: the report of a change may be lost. */
export const LOOK_MS = 1000
/** How long opening repeats what the engine has not confirmed. */
const OPEN_MS = 15_000

/** The clock on the wall, which tests replace. */
export interface Wall {
  readonly nowMs: () => number
}

/** What is not confirmed is repeated for a while. */
export const opening = <Value>(engine: Engine, work: () => Promise<Value>): Promise<Value> =>
  certainly(engine, work, (spentMs) => spentMs < OPEN_MS)

/** The rooms of definitions whose runs this process starts or reports to, each opened once. */
export class Rooms {
  readonly #rooms = new Map<string, Promise<Room>>()
  readonly #engine: Engine
  readonly #wall: Wall

  constructor(engine: Engine, wall: Wall) {
    this.#engine = engine
    this.#wall = wall
  }

  async #open(name: string): Promise<Room> {
    const engine = this.#engine
    const values = (of: string): Promise<KeyValue> => opening(engine, () => engine.keyValue(of, { ttlMs: 0 }))
    return {
      engine,
      name,
      queue: await opening(engine, () => engine.queue(runsQueueName(name))),
      heads: await values(headsName(name)),
      journals: await values(journalName(name)),
      boxes: await values(boxesName(name)),
      exposed: opened(() => values(exposedName(name))),
      holders: opened(() => values(holdersName(name))),
      nowMs: this.#wall.nowMs,
      report: (parent, child) => this.report(parent, child),
    }
  }

  of(name: string): Promise<Room> {
    const open = this.#rooms.get(name) ?? this.#open(name)
    this.#rooms.set(name, open)
    open.catch(() => this.#rooms.delete(name))
    return open
  }

  async run(name: string, key: string): Promise<Run> {
    const room = await this.of(name)
    const { clock } = room.engine
    const changed = (): Promise<void> => new Promise((resolve) => void clock.after(LOOK_MS, resolve))
    return new Run({ name, key }, room, { changed, running: () => undefined, stages: [] })
  }

  async children(name: string): Promise<Children> {
    const room = await this.of(name)
    return {
      start: (key, input, parent, how) =>
        this.#start(room, key, { ...freshHead(input, room.nowMs(), how), parent }),
      result: async (key) => (await this.run(name, key)).result(),
      cancel: async (key) => (await this.run(name, key)).cancel(),
    }
  }

  async #start(room: Room, key: string, begun: Head & { readonly parent: Parent }): Promise<void> {
    const { parent } = begun
    await begin(room, key, begun)
    const entry = await certainly(room.engine, () => room.heads.get(key))
    const bytes = entry?.bytes
    const head = bytes && readable({ name: room.name, key }, key, () => readHead(bytes))
    const of = head?.parent
    if (of?.name !== parent.name || of.key !== parent.key || of.signal !== parent.signal)
      throw new RunError('RUN_TAKEN', { name: room.name, key })
    // It was started before, by a parent that is run again.
    if (hasEnded(head as Head)) await this.report(parent, { id: (head as Head).id, key })
  }

  /** One that has ended, or was forgotten, does not wait for it any more. */
  async report({ name, key, signal }: Parent, child: ReportedRun): Promise<void> {
    try {
      await (await this.run(name, key)).send({ id: child.id, name: signal, frame: keptOf(child.key) }, true)
    } catch (error) {
      const isOver = error instanceof RunError && (error.code === 'RUN_ENDED' || error.code === 'RUN_UNKNOWN')
      if (!isOver) throw error
    }
  }
}

/** That of a run that begins. */
export const freshHead = (input: unknown, startedMs: number, { ttlMs, rank, limit }: Starting): Head => ({
  ...({ status: 'running', endedMs: 0, dueMs: 0, awaits: [], frame: undefined } as const),
  ...(ttlMs !== undefined && { ttlMs }),
  ...(rank !== undefined && { rank }),
  ...(limit !== undefined && { limit }),
  ...{ id: crypto.randomUUID(), input: keptOf(input), startedMs, trace: meters.steps?.current() },
})
