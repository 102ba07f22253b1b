/**
 * Fibers in a run: each goes on when it is chosen, in the time of the run.
 *
 * They wait for each other by a scheduler, which is replaced for as long as a run lasts.
 */
import { type Ready, Scheduler, turn } from '../fiber/internal.ts'
import { type Actor, type Play, current } from './play.ts'

/** So many steps that a fiber goes on until its next wait. */
const STEPS = 2048

class SeededScheduler extends Scheduler {
  readonly #play: Play
  /** A fiber belongs to the task that has started it. */
  readonly #owners = new WeakMap<Ready, Actor>()
  #end = (): void => {}

  constructor(play: Play) {
    super()
    this.#play = play
    this.isDraining = true
  }

  override push(ready: Ready): void {
    let owner = this.#owners.get(ready)
    if (owner === undefined) this.#owners.set(ready, (owner = current.getStore() ?? this.#play.root))
    const actor = owner
    this.#play.ready(actor, 'a fiber', () => {
      turn.steps = STEPS
      current.run(actor, () => ready.resume())
    })
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
    this.#end = this.#play.after(firstMs - this.#play.nowMs(), () => this.wakeSleepers())
  }
}

/** Let the fibers of this thread belong to `play` until what is returned is called. */
export function seedFibers(play: Play): () => void {
  const outer = turn.scheduler
  turn.scheduler = new SeededScheduler(play)
  return () => {
    turn.scheduler = outer
    turn.steps = 0
  }
}
