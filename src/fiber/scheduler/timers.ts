/**
 * Who is to be woken when: a binary heap by time, then by order of asking.
 *
 * It has no clock and no timer of its own; the scheduler asks it what is due. Each entry has its index, so
 * a sleeper that is interrupted leaves at once and nothing stale stays behind.
 */

/** Something that is due at a time. The last three fields are the heap's own. */
export interface Timed {
  /** When, in ms of the scheduler's clock. */
  readonly atMs: number
  /** Its index in the heap; -1 outside of it. */
  index: number
  /** Breaks ties: smaller was there first. */
  order: number
  /** The time has come; it has left the heap. */
  due(): void
}

export class Timers {
  readonly #heap: Timed[] = []
  #order = 0

  /** How many wait. */
  get size(): number {
    return this.#heap.length
  }

  /** The time of the first one; `undefined` when none waits. */
  get firstMs(): number | undefined {
    return this.#heap[0]?.atMs
  }

  /** Put one in. */
  add(timed: Timed): void {
    timed.order = this.#order++
    this.#heap.push(timed)
    this.#rise(timed, this.#heap.length - 1)
  }

  /** Take one out before its time; nothing happens when it is in no heap. */
  remove(timed: Timed): void {
    const index = timed.index
    if (index < 0) return
    timed.index = -1
    const last = this.#heap.pop() as Timed
    if (last === timed) return
    this.#rise(last, index)
    this.#sink(last, last.index)
  }

  /** Take out the first one if its time is `nowMs` or before. */
  takeDue(nowMs: number): Timed | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.atMs > nowMs) return undefined
    this.remove(first)
    return first
  }

  #rise(timed: Timed, from: number): void {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const other = this.#heap[above]
      if (!isBefore(timed, other)) break
      this.#set(other, index)
      index = above
    }
    this.#set(timed, index)
  }

  #sink(timed: Timed, from: number): void {
    let index = from
    for (;;) {
      let below = 2 * index + 1
      if (below >= this.#heap.length) break
      const right = this.#heap[below + 1]
      if (right !== undefined && isBefore(right, this.#heap[below])) below += 1
      const other = this.#heap[below]
      if (!isBefore(other, timed)) break
      this.#set(other, index)
      index = below
    }
    this.#set(timed, index)
  }

  #set(timed: Timed, index: number): void {
    this.#heap[index] = timed
    timed.index = index
  }
}

function isBefore(one: Timed, two: Timed): boolean {
  return one.atMs < two.atMs || (one.atMs === two.atMs && one.order < two.order)
}
