/**
 * A network in one thread whose losses, delays, repetitions, partitions and deaths follow from a seed, and
 * whose leaders may be alone: they accept writes, and never commit them.
 *
 * Nothing happens but events, each at a point of the time of a run of `corespun/test`, in their order.
 */
import { generator } from '../../../base/index.ts'
import type { Clock } from '../engine.ts'
import { Broker, type Network } from './broker.ts'
import { MemoryEngine } from './memory.ts'

/** What goes wrong, each a share from 0 to 1 of everything that is carried. */
export interface Faults {
  readonly loss: number
  readonly repeat: number
  /** Longest delay, in ms. */
  readonly delayMs: number
}

export class Simulation implements Network {
  readonly clock: Clock
  readonly epochMs = Date.UTC(2026, 0, 1)
  readonly confirmMs = 500
  readonly broker: Broker
  readonly random: () => number
  faults: Faults
  /** Clients that nothing reaches. */
  readonly cut = new Set<string>()
  /** What a leader that is alone has accepted from a client, and not confirmed. */
  readonly #accepted = new Map<string, (() => void)[]>()

  /** @param clock Whose time it is. */
  constructor(seed: number, faults: Faults, clock: Clock) {
    this.faults = faults
    this.random = generator(seed)
    this.clock = clock
    this.broker = new Broker(this)
  }

  connect(name: string, clock?: Clock): MemoryEngine {
    return new MemoryEngine(this.broker, name, undefined, clock)
  }

  carry(client: string, arrive: () => void): void {
    const { loss, repeat, delayMs } = this.faults
    const times = (this.random() < loss ? 0 : 1) + (this.random() < repeat ? 1 : 0)
    for (let time = 0; time < times; time++)
      this.clock.after(this.random() * delayMs, () => {
        if (!this.cut.has(client)) arrive()
      })
  }

  commit(client: string, write: () => void): void {
    const accepted = this.#accepted.get(client)
    if (accepted === undefined) write()
    else accepted.push(write)
  }

  /**
   * For some time, until what is returned is called, a client has a leader that is alone. What that has
   * accepted is committed behind it, where it is the leader again, or is dropped, by another one that never
   * had it.
   */
  isolate(client: string): () => void {
    if (this.#accepted.has(client)) return () => {}
    const accepted: (() => void)[] = []
    this.#accepted.set(client, accepted)
    return () => {
      if (this.#accepted.get(client) !== accepted) return
      this.#accepted.delete(client)
      if (this.random() < 0.5) for (const write of accepted) write()
    }
  }

  leaveAlone(client: string, ms: number): void {
    this.clock.after(ms, this.isolate(client))
  }
}
