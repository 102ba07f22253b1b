/**
 * Who is to be woken when: by time, then by order of asking.
 *
 * Sleepers of the same millisecond are in one bucket, in any order until it is their turn; the buckets are in
 * a binary heap. So most sleepers cost a push, and a heap of few buckets is what is kept in order. It has no
 * clock and no timer of its own; the scheduler asks it what is due. Each entry has its index, so a sleeper
 * that is interrupted leaves at once and nothing stale stays behind.
 */

/** Something that is due at a time. The last two fields are those of {@link Timers}. */
export interface Timed {
  /** When, in ms of the scheduler's clock. Does not change while it waits. */
  readonly atMs: number
  /** Its index in its bucket; -1 outside of one. */
  index: number
  /** Breaks ties: smaller was there first. */
  order: number
  /** The time has come; it has left its bucket. */
  due(): void
}

/** Those who are due in one millisecond, up to its end. */
class Bucket {
  readonly endMs: number
  /** Its index in the heap. */
  index = -1
  /** The last is due first, if `isSorted`. */
  readonly entries: Timed[] = []
  isSorted = true

  constructor(endMs: number) {
    this.endMs = endMs
  }

  add(timed: Timed): void {
    timed.index = this.entries.push(timed) - 1
    this.isSorted = this.entries.length === 1
  }

  remove(timed: Timed): void {
    const { index } = timed
    const last = this.entries.pop() as Timed
    timed.index = -1
    if (last === timed) return
    this.entries[index] = last
    last.index = index
    this.isSorted = false
  }

  /** Who is due first; there is one. */
  first(): Timed {
    const { entries } = this
    if (!this.isSorted) {
      entries.sort(isDueLater)
      for (let index = 0; index < entries.length; index += 1) entries[index].index = index
      this.isSorted = true
    }
    return entries[entries.length - 1]
  }
}

export class Timers {
  readonly #buckets = new Map<number, Bucket>()
  readonly #heap: Bucket[] = []
  #order = 0

  get isEmpty(): boolean {
    return this.#heap.length === 0
  }

  get firstMs(): number | undefined {
    return this.#heap[0]?.first().atMs
  }

  add(timed: Timed): void {
    timed.order = this.#order++
    const endMs = Math.ceil(timed.atMs)
    let bucket = this.#buckets.get(endMs)
    if (bucket === undefined) {
      bucket = new Bucket(endMs)
      this.#buckets.set(endMs, bucket)
      this.#heap.push(bucket)
      this.#rise(bucket, this.#heap.length - 1)
    }
    bucket.add(timed)
  }

  /** Take one out before its time; nothing happens when it is in none. */
  remove(timed: Timed): void {
    if (timed.index >= 0) this.#removeFrom(this.#buckets.get(Math.ceil(timed.atMs)) as Bucket, timed)
  }

  takeDue(nowMs: number): Timed | undefined {
    const bucket = this.#heap[0]
    if (bucket === undefined) return undefined
    const first = bucket.first()
    if (first.atMs > nowMs) return undefined
    this.#removeFrom(bucket, first)
    return first
  }

  #removeFrom(bucket: Bucket, timed: Timed): void {
    bucket.remove(timed)
    if (bucket.entries.length > 0) return
    this.#buckets.delete(bucket.endMs)
    const last = this.#heap.pop() as Bucket
    if (last === bucket) return
    this.#rise(last, bucket.index)
    this.#sink(last, last.index)
  }

  #rise(bucket: Bucket, from: number): void {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const other = this.#heap[above]
      if (other.endMs < bucket.endMs) break
      this.#set(other, index)
      index = above
    }
    this.#set(bucket, index)
  }

  #sink(bucket: Bucket, from: number): void {
    let index = from
    for (;;) {
      let below = 2 * index + 1
      if (below >= this.#heap.length) break
      const right = this.#heap[below + 1]
      if (right !== undefined && right.endMs < this.#heap[below].endMs) below += 1
      const other = this.#heap[below]
      if (bucket.endMs < other.endMs) break
      this.#set(other, index)
      index = below
    }
    this.#set(bucket, index)
  }

  #set(bucket: Bucket, index: number): void {
    this.#heap[index] = bucket
    bucket.index = index
  }
}

/** The order of a bucket: who is due first is last. */
function isDueLater(one: Timed, two: Timed): number {
  return two.atMs - one.atMs || two.order - one.order
}
