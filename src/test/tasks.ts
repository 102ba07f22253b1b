/**
 * Tasks of a run: code that is interleaved with others, waits for others, and can be killed.
 *
 * A killed task goes no further than its next wait, as a process that has ended.
 */
import { CheckError } from './errors.ts'
import { Actor, type Play, current } from './play.ts'

/** What {@link World.spawn} returns. */
export interface Spawned<Value = unknown> {
  /** How stories call it. */
  readonly name: string
  /** Waits for its end. @throws what it throws; {@link CheckError} `CHECK_KILLED`. */
  join(): Promise<Value>
  /**
   * Kills it at the wait that it has reached, as the end of a process does: none of its code runs any more,
   * not even `finally`. Its locks are released, its connections close, and what it has spawned dies, too.
   */
  kill(): void
}

export class Job<Value> implements Spawned<Value> {
  readonly name: string
  readonly actor: Actor
  readonly #play: Play
  readonly #ended: Promise<Value>
  #isJoined = false

  /** @param parent Whose death is its own. */
  constructor(play: Play, parent: Actor, name: string, fn: () => Value | Promise<Value>) {
    this.#play = play
    this.actor = new Actor(play, name, parent)
    this.name = name
    let [resolve, reject] = [(_: Value): void => {}, (_: unknown): void => {}]
    this.#ended = new Promise((...settle) => ([resolve, reject] = settle))
    this.#ended.catch(() => {})
    const ended = play.opened(this.actor, 'has not ended')
    const survived = this.actor.whenDead(() => {
      ended()
      if (!play.isOver) reject(new CheckError('CHECK_KILLED', { task: name }))
    })
    const body = async (): Promise<void> => {
      try {
        resolve(await fn())
      } catch (error) {
        if (!this.#isJoined && !this.actor.isDead) play.lost.set(this.actor, error)
        reject(error)
      } finally {
        ended()
        survived()
      }
    }
    play.ready(this.actor, 'begins', () => void current.run(this.actor, body))
  }

  join(): Promise<Value> {
    const call = `${this.name}.join()`
    const actor = this.#play.actor(call)
    this.#isJoined = true
    this.#play.lost.delete(this.actor)
    const wait = this.#play.wait<Value>(actor, call)
    this.#ended.then(wait.resolve, wait.reject)
    return wait.promise
  }

  kill(): void {
    this.#play.kill(this.actor)
  }
}
