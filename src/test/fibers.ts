/**
 * Fibers in a run: each goes on when it is chosen, in the time of the run.
 *
 * They wait for each other by a scheduler, which is replaced for as long as a run lasts.
 */
import type { LostFiberError } from '../fiber/index.ts'
import { type Ready, Scheduler, turn } from '../fiber/internal.ts'
import { type Actor, type Play, current } from './play.ts'

/** How fibers of a run go on. */
interface FiberSettings {
  /** Most steps that one makes before it has to step aside; of 2,048 it makes as many as outside of runs. */
  readonly stepsMax: number
  /** Receives errors that nobody does; default: listeners as outside, and without any the run fails. */
  readonly report?: (error: LostFiberError) => void
}

const OUTSIDE: FiberSettings = { stepsMax: 2048 }

class SeededScheduler extends Scheduler {
  readonly #play: Play
  readonly #settings: FiberSettings
  /** A fiber belongs to the task that has started it. */
  readonly #owners = new WeakMap<Ready, Actor>()
  #end = (): void => {}

  constructor(play: Play, settings: FiberSettings) {
    super()
    this.#play = play
    this.#settings = settings
    this.isDraining = true
  }

  override push(ready: Ready): void {
    let owner = this.#owners.get(ready)
    if (owner === undefined) this.#owners.set(ready, (owner = current.getStore() ?? this.#play.root))
    const actor = owner
    this.#play.ready(actor, 'a fiber', () => {
      this.grant()
      current.run(actor, () => ready.resume())
    })
  }

  /** How many steps the next one may make. */
  grant(): void {
    const { stepsMax } = this.#settings
    turn.steps = stepsMax === OUTSIDE.stepsMax ? stepsMax : 1 + Math.floor(this.random() * stepsMax)
  }

  override report(error: LostFiberError): void {
    if (this.#settings.report === undefined) super.report(error, () => void this.#play.unhandled.push(error))
    else this.#settings.report(error)
  }

  override beginTurn(): boolean {
    return false
  }

  override nowMs(): number {
    return this.#play.nowMs()
  }

  override random(): number {
    return (current.getStore() ?? this.#play.root).random()
  }

  override later(body: () => void): void {
    const actor = current.getStore() ?? this.#play.root
    this.#play.ready(actor, 'a fiber steps aside', () => current.run(actor, body))
  }

  protected override arm(): void {
    this.#end()
    const { firstMs } = this.timers
    if (firstMs === undefined) return
    this.#end = this.#play.at(firstMs, () => this.wakeSleepers())
  }
}

/** Let the fibers of this thread belong to `play` until what is returned is called. */
export function seedFibers(play: Play, settings = OUTSIDE): () => void {
  const outer = turn.scheduler
  turn.scheduler = new SeededScheduler(play, settings)
  return () => {
    turn.scheduler = outer
    turn.steps = 0
  }
}
