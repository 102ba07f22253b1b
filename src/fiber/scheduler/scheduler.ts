/**
 * Who runs next on this thread: a queue of what is ready, a bound on steps, a clock.
 *
 * What is ready runs in a microtask, in order, until nothing is ready or {@link STEPS_MAX} steps were made
 * since timers and I/O last had their turn; then the rest waits behind them (`setImmediate`). Nothing is
 * scheduled while nothing is ready, and one timer of Node serves all sleepers. The test runtime is a
 * subclass that chooses the order and the time (testing.ts).
 */
import { TIMER_MS_MAX } from '../../base/index.ts'
import { type LostFiberError, deliver } from './on-error.ts'
import { Timers, type Timed } from './timers.ts'

/** Steps that fibers may make before timers and I/O get their turn. */
export const STEPS_MAX = 2048
/** Longest time that one timer of Node can wait. */
const RING_LENGTH_FIRST = 256

export interface Ready {
  /** Go on, until the next wait. It does not throw. */
  resume(): void
}

/** The state of this thread. One object, so that compiled code has its address as a constant. */
export const turn: {
  /** Steps left until the turn of timers and I/O. */
  steps: number
  scheduler: Scheduler
} = { steps: STEPS_MAX, scheduler: undefined as never }

export class Scheduler {
  protected readonly timers = new Timers()
  #ring: (Ready | undefined)[] = new Array<undefined>(RING_LENGTH_FIRST).fill(undefined)
  #mask = RING_LENGTH_FIRST - 1
  #first = 0
  #end = 0
  #isAwake = false
  #timer: NodeJS.Timeout | undefined
  #timerMs = Infinity

  /** Whether ready ones are being run right now, by {@link Scheduler.drain}. */
  isDraining = false

  /** Let it go on, soon, behind all that are ready. */
  push(ready: Ready): void {
    const end = this.#end
    this.#ring[end] = ready
    this.#end = (end + 1) & this.#mask
    if (this.#end === this.#first) this.#grow()
    if (!this.#isAwake) this.wake()
  }

  /** Take `ready` out if nobody else is ready and it has its turn now; the caller lets it go on. */
  takeOnly(ready: Ready): boolean {
    const first = this.#first
    const next = (first + 1) & this.#mask
    if (this.#ring[first] !== ready || next !== this.#end || !this.isDraining || turn.steps <= 0) return false
    turn.steps -= 1
    this.#ring[first] = undefined
    this.#first = next
    return true
  }

  /**
   * For a microtask that has nothing below it on the stack, such as one of a promise that has settled, and
   * that makes fibers ready: whether it is to run them by {@link Scheduler.endTurn}, which it then must call.
   * Otherwise others are ready before them.
   */
  beginTurn(): boolean {
    if (this.#isAwake || turn.steps <= 0) return false
    this.#isAwake = true
    return true
  }

  /** See {@link Scheduler.beginTurn}. */
  endTurn(): void {
    this.#drain()
  }

  /** {@link Scheduler.endTurn} where one is ready that is not in the queue. */
  runTurn(ready: Ready): void {
    this.isDraining = true
    turn.steps -= 1
    try {
      ready.resume()
    } finally {
      if (this.#first === this.#end) this.#rest()
      else this.#drain()
    }
  }

  /** The time in ms; it never goes back. */
  nowMs(): number {
    return performance.now()
  }

  /** A number from 0 to 1 for jitter. */
  random(): number {
    return Math.random()
  }

  wait(timed: Timed): void {
    this.timers.add(timed)
    if (timed.atMs < this.#timerMs) this.arm(timed.atMs)
  }

  forget(timed: Timed): void {
    this.timers.remove(timed)
    if (this.timers.isEmpty) this.arm(undefined)
  }

  /** Call `body` when timers and I/O have had their turn. */
  later(body: () => void): void {
    setImmediate(body)
  }

  /** Passes on an error that no caller receives, to the listeners of `onError`. */
  report(error: LostFiberError, unheard?: (error: LostFiberError) => void): void {
    deliver(error, unheard)
  }

  /** Something is ready: see that {@link Scheduler.drain} is called. */
  protected wake(): void {
    this.#isAwake = true
    if (turn.steps > 0) queueMicrotask(this.#drain)
    else setImmediate(this.#refill)
  }

  /** `firstMs` is the time of the first sleeper: see that {@link Scheduler.wakeSleepers} is called then. */
  protected arm(firstMs: number | undefined): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerMs = firstMs ?? Infinity
    if (firstMs === undefined) return
    const delayMs = Math.min(Math.max(0, Math.ceil(firstMs - this.nowMs())), TIMER_MS_MAX)
    this.#timer = setTimeout(() => this.wakeSleepers(), delayMs)
  }

  /** Wakes everybody whose time has come. */
  protected wakeSleepers(): void {
    const nowMs = this.nowMs()
    for (let next = this.timers.takeDue(nowMs); next !== undefined; next = this.timers.takeDue(nowMs))
      next.due()
    this.arm(this.timers.firstMs)
  }

  readonly #refill = (): void => {
    turn.steps = STEPS_MAX
    this.#drain()
  }

  readonly #drain = (): void => {
    this.isDraining = true
    try {
      while (this.#first !== this.#end && turn.steps-- > 0) {
        const first = this.#first
        const ready = this.#ring[first] as Ready
        this.#ring[first] = undefined
        this.#first = (first + 1) & this.#mask
        ready.resume()
      }
    } finally {
      // Also behind a bug that makes one of them throw: the others go on.
      if (this.#first === this.#end) this.#rest()
      else {
        this.isDraining = false
        setImmediate(this.#refill)
      }
    }
  }

  /** Nothing is ready: a ring that a crowd has made large is given back. */
  #rest(): void {
    this.isDraining = false
    this.#isAwake = false
    if (this.#ring.length <= RING_LENGTH_FIRST * 16) return
    this.#ring = new Array<undefined>(RING_LENGTH_FIRST).fill(undefined)
    this.#mask = RING_LENGTH_FIRST - 1
    this.#first = 0
    this.#end = 0
  }

  /** The ring is full, its end at its beginning: twice the length, in order. */
  #grow(): void {
    const old = this.#ring
    const length = old.length
    const next = new Array<Ready | undefined>(length * 2).fill(undefined)
    for (let index = 0; index < length; index += 1) next[index] = old[(this.#first + index) & this.#mask]
    this.#ring = next
    this.#mask = length * 2 - 1
    this.#first = 0
    this.#end = length
  }
}

turn.scheduler = new Scheduler()
