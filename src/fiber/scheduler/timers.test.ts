/**
 * The order in which sleepers are woken, against a list that is searched from its beginning.
 *
 * Times are close together and far apart, so that buckets have many entries, and one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Timers, type Timed } from './timers.ts'

class Sleeper implements Timed {
  readonly atMs: number
  index = -1
  order = 0

  constructor(atMs: number) {
    this.atMs = atMs
  }

  due(): void {}
}

/** A number from 0 to `below`, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state / 2 ** 32) * below
  }
}

/** In the order of asking. */
class Model {
  readonly #waiting: Timed[] = []

  add(timed: Timed): void {
    this.#waiting.push(timed)
  }

  remove(timed: Timed): void {
    this.#waiting.splice(this.#waiting.indexOf(timed), 1)
  }

  first(): Timed | undefined {
    let first: Timed | undefined
    for (const one of this.#waiting) if (first === undefined || one.atMs < first.atMs) first = one
    return first
  }

  any(at: number): Timed | undefined {
    return this.#waiting[Math.floor(at * this.#waiting.length)]
  }
}

for (const spreadMs of [0, 1, 7, 3_000]) {
  test(`sleepers within ${spreadMs} ms are woken by time, then by order of asking`, () => {
    const next = numbers(spreadMs + 1)
    const [timers, model] = [new Timers(), new Model()]
    let nowMs = 0
    for (let step = 0; step < 4_000; step += 1) {
      const what = next(10)
      const one = model.any(next(1))
      if (what < 5) {
        // Some at the very same time, some at the end of a millisecond.
        const sleeper = new Sleeper(nowMs + (what < 3 ? next(spreadMs) : Math.floor(next(spreadMs))))
        timers.add(sleeper)
        model.add(sleeper)
      } else if (what < 7 && one !== undefined) {
        timers.remove(one)
        model.remove(one)
        assert.equal(one.index, -1)
        timers.remove(one)
      } else {
        nowMs += next(spreadMs / 8)
        for (let due = timers.takeDue(nowMs); due !== undefined; due = timers.takeDue(nowMs)) {
          assert.equal(due, model.first())
          assert.equal(due.index, -1)
          model.remove(due)
        }
        const first = model.first()
        assert.ok(first === undefined || first.atMs > nowMs)
      }
      assert.equal(timers.firstMs, model.first()?.atMs)
      assert.equal(timers.isEmpty, model.first() === undefined)
    }
  })
}
