/**
 * Follows the changes of a store, and states up to when nothing is missing.
 *
 * The time is taken before the servers are asked for their last revision, and counts once that one has been
 * applied. Whoever has lost its servers receives nothing, and the time stays where it was.
 */
import type { Clock, End, Entry, KeyValue } from '../engine/engine.ts'
import { hasCode } from '../errors.ts'

/** Who follows. */
interface Follower {
  readonly checkMs: number
  nowMs(): number
  /** What it throws ends the following. */
  apply(entry: Entry): void
  /** All that was written up to this time has been applied. */
  confirmed(atMs: number): void
}

export class Following {
  readonly #clock: Clock
  readonly #values: KeyValue
  readonly #follower: Follower
  #applied = 0
  /** What the servers had, and when they were asked. */
  #asked: { readonly revision: number; readonly atMs: number } | undefined
  #failure: unknown
  #endWatching: End = () => {}
  #endChecking: End = () => {}
  #isOver = false

  constructor(clock: Clock, values: KeyValue, follower: Follower) {
    this.#clock = clock
    this.#values = values
    this.#follower = follower
  }

  /** Resolves when all is applied that was written before. @throws What `apply` has thrown. */
  async begin(): Promise<void> {
    const atMs = this.#follower.nowMs()
    const revision = await this.#values.last()
    this.#endWatching = await this.#values.watch((entry) => this.#changed(entry))
    if (this.#failure !== undefined) throw this.#failure
    // Nothing comes for what was deleted before.
    this.#asked = { revision, atMs }
    this.#reached(revision)
    this.#checkLater()
  }

  #changed(entry: Entry): void {
    if (this.#isOver) return
    try {
      this.#follower.apply(entry)
    } catch (error) {
      this.#failure = error
      this.close()
      return
    }
    this.#reached(entry.revision)
  }

  #reached(revision: number): void {
    this.#applied = Math.max(this.#applied, revision)
    if (this.#asked === undefined || this.#applied < this.#asked.revision) return
    this.#follower.confirmed(this.#asked.atMs)
    this.#asked = undefined
  }

  #checkLater(): void {
    this.#endChecking = this.#clock.after(this.#follower.checkMs, () => void this.#check())
  }

  async #check(): Promise<void> {
    const atMs = this.#follower.nowMs()
    try {
      const revision = await this.#values.last()
      if (this.#isOver) return
      this.#asked = { revision, atMs }
      this.#reached(0)
    } catch (error) {
      // What is not confirmed is asked again.
      if (this.#isOver || hasCode(error, 'FLEET_CLOSED')) return
    }
    this.#checkLater()
  }

  close(): void {
    this.#isOver = true
    this.#endChecking()
    this.#endWatching()
  }
}
