/**
 * A network in one thread whose time, losses, delays, repetitions, partitions and deaths follow from a seed,
 * and whose leaders may be alone: they accept writes, and never commit them.
 *
 * Nothing happens but events, each at a point of simulated time, in their order. Between two events the
 * thread's own promises settle, so the same seed has the same run. A run that fails names its seed. The
 * world of `corespun/test` has it on its own clock.
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

interface Event {
  readonly atMs: number
  readonly run: () => void
  isOver: boolean
}

/** Of events without an end of the work: a run that never ends is a failure. */
const EVENTS_MAX = 200_000

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
  readonly #events: Event[] = []
  #nowMs = 0

  /** @param clock Whose time it is; its own, which {@link Simulation.run} moves, by default. */
  constructor(seed: number, faults: Faults, clock?: Clock) {
    this.faults = faults
    this.random = generator(seed)
    this.clock = clock ?? { nowMs: () => this.#nowMs, after: (ms, run) => this.#after(ms, run) }
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
   * For some time a client has a leader that is alone. What that has accepted is committed behind it, where
   * it is the leader again, or is dropped, by another one that never had it.
   */
  leaveAlone(client: string, ms: number): void {
    if (this.#accepted.has(client)) return
    this.#accepted.set(client, [])
    this.clock.after(ms, () => {
      const accepted = this.#accepted.get(client)!
      this.#accepted.delete(client)
      if (this.random() < 0.5) for (const write of accepted) write()
    })
  }

  #after(ms: number, run: () => void): () => void {
    const event: Event = { atMs: this.#nowMs + ms, run, isOver: false }
    // Behind those of the same time, so that what is not delayed stays in its order.
    let at = this.#events.length
    while (at > 0 && this.#events[at - 1].atMs > event.atMs) at--
    this.#events.splice(at, 0, event)
    return () => {
      event.isOver = true
    }
  }

  /** Let events happen until `work` settles. */
  async run<Value>(work: Promise<Value>): Promise<Value> {
    let isSettled = false
    const settled = work.finally(() => {
      isSettled = true
    })
    settled.catch(() => {})
    for (let count = 0; count < EVENTS_MAX; count++) {
      await turn()
      if (isSettled) return settled
      const event = this.#events.shift()
      if (event === undefined) throw new Error('nothing happens any more, and the work has not ended')
      this.#nowMs = event.atMs
      if (!event.isOver) event.run()
    }
    throw new Error(`the work has not ended after ${EVENTS_MAX} events`)
  }
}

/** The promises of this thread settle. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
