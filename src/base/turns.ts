/**
 * The turns of a thread's event loop that a loop over items leaves it.
 *
 * Items that are there already pass from promise to promise, and so do those of a source that never waits:
 * while either side computes, no timer fires, no message arrives and no signal aborts, so that no limit of
 * the loop itself would end it. Whoever hands out or takes items therefore asks here before each of them.
 */
import { setImmediate } from 'node:timers'
import { effects } from './seeds.ts'

/** How long a loop over items keeps its thread's event loop from a turn, in ms. */
const TURN_MS = 8
/** Items that took no longer than this since the last look at the clock are quick. */
const QUICK_MS = 1
/** Most quick items between two looks at the clock, which cost some 40 ns each. */
const SKIP_MAX = 7
/** In a seeded run, whose seed decides no real time, a turn is due after so many questions. */
const ASKED_MAX = 1024

/** To look it up for each item costs as much as the call, and at import Node would load a dozen modules. */
let now = (): number => {
  now = performance.now.bind(performance)
  return now()
}

/** Resolves when the event loop has had a turn; in a seeded run, when its task is chosen. */
export function turn(): Promise<void> {
  const task = effects.seeded?.()
  if (task !== undefined) return task.step('a turn of the event loop')
  return new Promise((resolve) => void setImmediate(resolve))
}

export class Turns {
  #turnMs = now()
  #lookedMs = this.#turnMs
  #skip = 0
  #skipped = 0
  #asked = 0
  /** Whether a turn is waited for by {@link Turns.pauses}. */
  isPausing = false

  /** Whether a turn is due; ask once for each item. */
  isDue(): boolean {
    if (effects.seeded?.() !== undefined) return ++this.#asked % ASKED_MAX === 0
    if (this.#skipped < this.#skip) {
      this.#skipped++
      return false
    }
    this.#skipped = 0
    const nowMs = now()
    // The first slow item is noticed behind as few others as there were quick ones.
    this.#skip = nowMs - this.#lookedMs < QUICK_MS ? Math.min(SKIP_MAX, 2 * this.#skip + 1) : 0
    this.#lookedMs = nowMs
    return nowMs - this.#turnMs > TURN_MS
  }

  /** Resolves behind a turn. */
  async taken(): Promise<void> {
    await turn()
    this.had()
  }

  /** The event loop has just had a turn. */
  had(): void {
    this.#turnMs = this.#lookedMs = now()
  }

  /** Whether a turn is due, or was and has not come: then `resumed` is called behind it, once. */
  pauses(resumed: () => void): boolean {
    if (this.isPausing) return true
    if (!this.isDue()) return false
    this.isPausing = true
    void this.taken().then(() => {
      this.isPausing = false
      resumed()
    })
    return true
  }
}
