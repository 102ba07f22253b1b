/**
 * When to do something again, and how often: the policy of `retry` and `repeat`.
 *
 * A Schedule is an immutable value. `start()` returns a driver, which decides after each run whether to run
 * again and how long to wait first. It receives the time and the random numbers, so the same inputs return
 * the same results; it reads no clock.
 */
import { checkMs, wrong } from '../errors.ts'

/** One use of a schedule. */
export interface ScheduleDriver<In = unknown> {
  /**
   * Whether to run again.
   * @param input What the run returned: its failure for `retry`, its value for `repeat`.
   * @param nowMs The time now, in ms, on any clock that does not go back.
   * @returns How long to wait before the next run, in ms, 0 or more; `undefined`: do not run again. After
   *   `undefined` every further result is `undefined`.
   */
  next(input: In, nowMs: number): number | undefined
}

/** Options of {@link Schedule.start}. */
export interface ScheduleOptions {
  /** A source of numbers from 0 (included) to 1 (excluded). Default `Math.random`. */
  readonly random?: () => number
  /** The time of the calendar, in ms since 1970, which `cron` needs. Default `Date.now`. */
  readonly today?: () => number
}

type Step<In> = (input: In, nowMs: number) => number | undefined
type Begin<In> = (random: () => number, today: () => number) => Step<In>

/**
 * When to run something again, and for how long: the policy of `retry` and `repeat`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Schedule } from 'corespun/fiber'
 *
 * const driver = Schedule.exponential(10).capped(30).and(Schedule.recurs(3)).start()
 * const delaysMs = [1, 2, 3, 4].map((input) => driver.next(input, 0))
 * assert.deepEqual(delaysMs, [10, 20, 30, undefined])
 * ```
 */
export class Schedule<in In = unknown> {
  readonly #begin: Begin<In>

  private constructor(begin: Begin<In>) {
    this.#begin = begin
  }

  /** Without end, each delay made of the last one and the one before. */
  static #growing(baseMs: number, next: (delayMs: number, beforeMs: number) => number): Schedule {
    return new Schedule(() => {
      let beforeMs = 0
      let delayMs = baseMs
      return () => {
        const now = delayMs
        delayMs = Math.min(next(delayMs, beforeMs), Number.MAX_SAFE_INTEGER)
        beforeMs = now
        return now
      }
    })
  }

  /** Again at once, without end. */
  static get forever(): Schedule {
    return new Schedule(() => () => 0)
  }

  /**
   * Again at once, `times` times: with `recurs(2)` a body runs three times at most.
   * @param times 0 or more.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static recurs(times: number): Schedule {
    if (!Number.isInteger(times) || times < 0) throw wrong('recurs(): times', 'an integer from 0', times)
    return new Schedule(() => {
      let left = times
      return () => (left-- > 0 ? 0 : undefined)
    })
  }

  /**
   * Again after `ms`, counted from the end of the run before, without end.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static spaced(ms: number): Schedule {
    checkMs('spaced(): ms', ms)
    return new Schedule(() => () => ms)
  }

  /**
   * Again after `baseMs`, then `baseMs * factor`, then `baseMs * factor ** 2` and so on, without end; see
   * {@link Schedule.capped}.
   * @param factor 1 or more. Default 2.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static exponential(baseMs: number, factor = 2): Schedule {
    checkMs('exponential(): baseMs', baseMs)
    if (!(typeof factor === 'number' && factor >= 1 && factor < Infinity))
      throw wrong('exponential(): factor', 'a number from 1', factor)
    return Schedule.#growing(baseMs, (delayMs) => delayMs * factor)
  }

  /**
   * Again after `baseMs`, twice, and then each time after the sum of the last two delays, without end.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static fibonacci(baseMs: number): Schedule {
    checkMs('fibonacci(): baseMs', baseMs)
    return Schedule.#growing(baseMs, (delayMs, beforeMs) => delayMs + beforeMs)
  }

  /**
   * Again after `baseMs`, then `2 * baseMs`, then `3 * baseMs` and so on, without end.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static linear(baseMs: number): Schedule {
    checkMs('linear(): baseMs', baseMs)
    return Schedule.#growing(baseMs, (delayMs) => delayMs + baseMs)
  }

  /**
   * Again every `ms`, counted from the end of the first run, whatever the runs take. A run that takes longer
   * is followed by the next at once; what it has missed is left out.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static fixed(ms: number): Schedule {
    checkMs('fixed(): ms', ms)
    return new Schedule(() => {
      let dueMs: number | undefined
      return (_, nowMs) => {
        const lateMs = dueMs === undefined ? 0 : nowMs - dueMs
        // One that is late begins now, and the next at the next of the fixed times.
        const isLate = lateMs >= ms && dueMs !== undefined
        if (isLate) dueMs = (dueMs as number) + ms * Math.floor(lateMs / (ms || 1))
        else dueMs = (dueMs ?? nowMs) + ms
        return isLate ? 0 : dueMs - nowMs
      }
    })
  }

  /**
   * Again at the next multiple of `ms`, counted from the end of the first run: runs that take longer leave
   * windows out.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  static windowed(ms: number): Schedule {
    checkMs('windowed(): ms', ms)
    return new Schedule(() => {
      let beganMs: number | undefined
      return (_, nowMs) => {
        beganMs ??= nowMs
        return ms === 0 ? 0 : ms - ((nowMs - beganMs) % ms)
      }
    })
  }

  /**
   * Again at the times of a calendar, such as a pattern of cron: `Schedule.cron(new Cron('0 3 * * *'))` with
   * the package croner. It ends when there is no later time.
   * @param pattern Its `nextRun(after)` returns the first time after a Date, or `null`.
   * @throws {FiberError} `FIBER_ARGUMENT`, by the driver for another result; and what `nextRun` throws.
   */
  static cron(pattern: { nextRun(after: Date): Date | null | undefined }): Schedule {
    if (typeof (pattern as Partial<typeof pattern> | null)?.nextRun !== 'function')
      throw wrong('cron(): pattern', 'an object with nextRun(), as new Cron() of croner makes', pattern)
    return new Schedule((_, today) => {
      let last = -Infinity
      return () => {
        // A timer may be early by the calendar: never the same time twice.
        const now = today()
        const next = pattern.nextRun(new Date(Math.max(now, last)))
        if (next === null || next === undefined) return undefined
        last = next instanceof Date ? next.getTime() : Number.NaN
        if (Number.isNaN(last)) throw wrong('cron(): what nextRun() returned', 'a Date or null', next)
        return Math.max(0, last - now)
      }
    })
  }

  /**
   * The same with each delay multiplied by a number drawn between `least` and `most`, so that many who failed
   * together do not come back together. Default 0.8 to 1.2.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  jittered(least = 0.8, most = 1.2): Schedule<In> {
    const areNumbers = typeof least === 'number' && typeof most === 'number'
    if (!(areNumbers && least >= 0 && least <= most && most < Infinity))
      throw wrong('jittered(): least and most', 'numbers from 0, the larger one last', [least, most])
    return new Schedule((random, today) => {
      const step = this.#begin(random, today)
      return (input, nowMs) => {
        const delayMs = step(input, nowMs)
        return delayMs === undefined ? undefined : delayMs * (least + (most - least) * random())
      }
    })
  }

  /**
   * The same with no delay above `mostMs`.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  capped(mostMs: number): Schedule<In> {
    checkMs('capped(): mostMs', mostMs)
    return new Schedule((random, today) => {
      const step = this.#begin(random, today)
      return (input, nowMs) => {
        const delayMs = step(input, nowMs)
        return delayMs === undefined ? undefined : Math.min(delayMs, mostMs)
      }
    })
  }

  /**
   * The same while less than `ms` have passed since the end of the first run.
   * @throws {FiberError} `FIBER_ARGUMENT`.
   */
  upTo(ms: number): Schedule<In> {
    checkMs('upTo(): ms', ms)
    return new Schedule((random, today) => {
      const step = this.#begin(random, today)
      let beganMs: number | undefined
      return (input, nowMs) => {
        beganMs ??= nowMs
        return nowMs - beganMs < ms ? step(input, nowMs) : undefined
      }
    })
  }

  /**
   * The same while `predicate` returns true for what the run returned.
   * @throws {FiberError} `FIBER_ARGUMENT`. What `predicate` throws comes out of the driver.
   */
  while<Seen>(predicate: (input: Seen) => boolean): Schedule<In & Seen> {
    if (typeof predicate !== 'function') throw wrong('while(): predicate', 'a function', predicate)
    return new Schedule<In & Seen>((random, today) => {
      const step = this.#begin(random, today)
      return (input, nowMs) => (predicate(input) ? step(input, nowMs) : undefined)
    })
  }

  /** Again while both would, after the longer delay (ZIO's intersection, `&&`). */
  and<Other>(other: Schedule<Other>): Schedule<In & Other> {
    return this.#with('and', other, (one, two) =>
      one === undefined || two === undefined ? undefined : Math.max(one, two),
    )
  }

  /** Again while either would, after the shorter delay (ZIO's union, `||`). */
  or<Other>(other: Schedule<Other>): Schedule<In & Other> {
    return this.#with('or', other, (one, two) =>
      one === undefined ? two : two === undefined ? one : Math.min(one, two),
    )
  }

  /** A new use of the schedule, from its beginning. */
  start({ random = Math.random, today = Date.now }: ScheduleOptions = {}): ScheduleDriver<In> {
    const step = this.#begin(random, today)
    let over = false
    return {
      next(input, nowMs) {
        const delayMs = over ? undefined : step(input, nowMs)
        over = delayMs === undefined
        return delayMs
      },
    }
  }

  #with<Other>(
    call: string,
    other: Schedule<Other>,
    decide: (one: number | undefined, two: number | undefined) => number | undefined,
  ): Schedule<In & Other> {
    if (!(other instanceof Schedule)) throw wrong(`${call}(): the other schedule`, 'a Schedule', other)
    return new Schedule<In & Other>((random, today) => {
      const one = this.start({ random, today })
      const two = other.start({ random, today })
      return (input, nowMs) => decide(one.next(input, nowMs), two.next(input, nowMs))
    })
  }
}
