/**
 * What the fibers of a run wait for that is no work: a time on the wall's clock, or a signal.
 *
 * A signal that nobody waits for is kept for who does later; one is received once, the oldest first.
 */
import { unwatch, watch } from '../base/index.ts'
import type { Engine } from '../fleet/internal.ts'
import type { Signal } from './records.ts'

/** A clock on the wall may be set meanwhile. */
const LOOK_MS = 60_000

interface Wait {
  readonly dueMs: number
  readonly name: string | undefined
  settle(signal: Signal | undefined): void
}

export class Waits {
  readonly #clock: Engine['clock']
  readonly #nowMs: () => number
  /** Called when one begins or ends. */
  readonly #changed: () => void
  readonly #waits = new Set<Wait>()
  #unread: Signal[] = []
  /** Those that were seen, received too. */
  readonly #seen: Set<string>

  constructor(clock: Engine['clock'], nowMs: () => number, seen: ReadonlySet<string>, changed: () => void) {
    this.#clock = clock
    this.#nowMs = nowMs
    this.#seen = new Set(seen)
    this.#changed = changed
  }

  get size(): number {
    return this.#waits.size
  }

  /** When the first of them ends by time; `Infinity` without one. */
  get dueMs(): number {
    return Math.min(Infinity, ...[...this.#waits].map(({ dueMs }) => dueMs))
  }

  /** The signals that are waited for. */
  get names(): string[] {
    return [...new Set([...this.#waits].flatMap(({ name }) => name ?? []))]
  }

  /** Whether a signal of that name is there, and not waited for. */
  has(name: string): boolean {
    return this.#unread.some((signal) => signal.name === name)
  }

  /** Those of a box that are new are received by who waits for them. */
  receive(signals: readonly Signal[]): void {
    for (const signal of signals) {
      if (this.#seen.has(signal.id)) continue
      this.#seen.add(signal.id)
      const wait = [...this.#waits].find(({ name }) => name === signal.name)
      if (wait === undefined) this.#unread.push(signal)
      else wait.settle(signal)
    }
  }

  /** It was not received after all. */
  putBack(signal: Signal): void {
    const wait = [...this.#waits].find(({ name }) => name === signal.name)
    if (wait === undefined) this.#unread = [signal, ...this.#unread]
    else wait.settle(signal)
  }

  /**
   * Resolves with a signal of that name, or with `undefined`: it is due, or interrupted.
   * @param name `undefined`: the time alone is waited for.
   */
  wait(dueMs: number, name: string | undefined, interrupted: AbortSignal): Promise<Signal | undefined> {
    const index = name === undefined ? -1 : this.#unread.findIndex((signal) => signal.name === name)
    if (index >= 0) return Promise.resolve(this.#unread.splice(index, 1)[0])
    return new Promise((resolve) => {
      let endTimer = (): void => {}
      const wait: Wait = {
        dueMs,
        name,
        settle: (signal) => {
          if (!this.#waits.delete(wait)) return
          endTimer()
          unwatch(interrupted, aborted)
          resolve(signal)
          this.#changed()
        },
      }
      const aborted = (): void => wait.settle(undefined)
      const look = (): void => {
        const leftMs = dueMs - this.#nowMs()
        if (leftMs <= 0) wait.settle(undefined)
        else if (dueMs < Infinity) endTimer = this.#clock.after(Math.min(leftMs, LOOK_MS), look)
      }
      this.#waits.add(wait)
      watch(interrupted, aborted)
      look()
      this.#changed()
    })
  }
}
