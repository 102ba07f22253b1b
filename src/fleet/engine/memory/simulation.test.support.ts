/**
 * A network in one thread whose time, losses, delays, repetitions, partitions and deaths follow from a seed,
 * and whose leaders may be alone: they accept writes, and never commit them.
 *
 * Nothing happens but events, each at a point of simulated time, in their order. Between two events the
 * thread's own promises settle, so the same seed has the same run. A run that fails names its seed.
 */
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

  constructor(seed: number, faults: Faults) {
    this.faults = faults
    this.random = generator(seed)
    this.clock = { nowMs: () => this.#nowMs, after: (ms, run) => this.#after(ms, run) }
    this.broker = new Broker(this)
  }

  connect(name: string): MemoryEngine {
    return new MemoryEngine(this.broker, name)
  }

  carry(client: string, arrive: () => void): void {
    const { loss, repeat, delayMs } = this.faults
    const times = (this.random() < loss ? 0 : 1) + (this.random() < repeat ? 1 : 0)
    for (let time = 0; time < times; time++)
      this.#after(this.random() * delayMs, () => {
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
    this.#after(ms, () => {
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

/**
 * Those that a test plays: 1 to `count`, or as many as CORESPUN_SEEDS names; CORESPUN_SEED names one alone.
 * @param partOf Which of them this run does; not asked for one that is named.
 */
export function seeds(count: number, partOf = (all: number[]): number[] => all): number[] {
  const { CORESPUN_SEED: one, CORESPUN_SEEDS: most = String(count) } = process.env
  for (const text of [one ?? '1', most])
    if (!/^[1-9]\d{0,8}$/.test(text))
      throw new TypeError(`CORESPUN_SEED and CORESPUN_SEEDS must be 1 or more, received ${text}`)
  if (one !== undefined) return [Number(one)]
  return partOf(Array.from({ length: Number(most) }, (_, index) => index + 1))
}

/** The promises of this thread settle. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
