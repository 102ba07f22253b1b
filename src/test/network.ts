/**
 * Connections of a run to one fleet: over a network that loses, delays and repeats as the seed decides.
 *
 * The network is that of the suites of fleets; here its events are steps of the run.
 */
import type { Faults, Fleet, Simulation, simulated } from '../fleet/internal.ts'
import { type Actor, type Play, current } from './play.ts'

/** What is loaded before a run. */
export type FleetParts = Awaited<ReturnType<typeof simulated>>

/** Where the connections of a run meet. */
export class SeededNetwork {
  readonly #play: Play
  readonly #faults: Faults
  readonly #owners = new Map<string, Actor>()
  readonly #cut = new Set<Actor>()
  readonly parts: FleetParts
  #simulation: Simulation | undefined

  constructor(play: Play, faults: Faults, parts: FleetParts) {
    this.#play = play
    this.#faults = faults
    this.parts = parts
  }

  get #network(): Simulation {
    if (this.#simulation !== undefined) return this.#simulation
    const play = this.#play
    const simulation = new this.parts.Simulation(play.seed, this.#faults, play)
    const carry = simulation.carry.bind(simulation)
    // What arrives at a connection is handled by the task that has opened it, if that is alive.
    simulation.carry = (client, arrive) => {
      const owner = this.#owners.get(client)!
      carry(client, () => {
        if (!owner.isDead && !this.#cut.has(owner)) current.run(owner, arrive)
      })
    }
    return (this.#simulation = simulation)
  }

  /** A connection of the task that calls; it ends with that. */
  connect(): Fleet {
    const actor = this.#play.actor('connect()')
    const client = `${actor.name} ${this.#owners.size + 1}`
    this.#owners.set(client, actor)
    const play = this.#play
    // Timers of a process end with it; those of the network do not.
    const after = (ms: number, run: () => void) =>
      play.after(ms, () => void (actor.isDead || current.run(actor, run)))
    const engine = this.#network.connect(client, { nowMs: () => play.nowMs(), after })
    actor.whenDead(() => engine.vanish())
    return this.parts.fleetOver(engine)
  }

  /** Nothing passes to and from the connections of a task until what is returned is called. */
  cut(actor: Actor): () => void {
    this.#cut.add(actor)
    return () => void this.#cut.delete(actor)
  }

  isCut(actor: Actor): boolean {
    return this.#cut.has(actor)
  }
}
