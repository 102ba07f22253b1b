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
  /** Called when somebody is cut off, or is not any more. */
  readonly #looks = new Set<() => void>()
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

  /**
   * Nothing passes to and from the connections of a task until what is returned is called; of `'commits'`
   * what those that it has write to the fleet is accepted, and not committed.
   */
  cut(actor: Actor, what: 'messages' | 'commits'): () => void {
    if (what === 'commits') {
      const own = [...this.#owners].filter(([, owner]) => owner === actor)
      const ends = own.map(([client]) => this.#network.isolate(client))
      return () => ends.forEach((end) => end())
    }
    this.#cut.add(actor)
    const look = (): void => this.#looks.forEach((each) => each())
    look()
    return () => void (this.#cut.delete(actor) && look())
  }

  /** Call `lost` when one of them is cut off for so long, until what is returned is called. */
  whenCut(actors: readonly Actor[], ms: number, lost: () => void): () => void {
    let [isCut, end] = [false, (): void => {}]
    const look = (): void => {
      if (isCut === actors.some((actor) => this.#cut.has(actor))) return
      isCut = !isCut
      if (isCut) end = this.#play.after(ms, lost)
      else end()
    }
    this.#looks.add(look)
    look()
    return () => {
      end()
      this.#looks.delete(look)
    }
  }

  isCut(actor: Actor): boolean {
    return this.#cut.has(actor)
  }
}
