/**
 * Stages that run in the fiber of the stream: each makes a run of a run.
 *
 * A stage that ends a stream by itself, as `take` does, returns `STOP` to its source and `undefined` to
 * whoever receives its items: only the latter's own `STOP` means that they need no more.
 */
import { type Operation, type Schedule, fromExit, sleep } from '../fiber/index.ts'
import { exitWithin, turn, within } from '../fiber/internal.ts'
import { type Emit, type End, Guard, type Run, STOP, type Wait, waited } from './run.ts'

type Test = (item: unknown) => unknown

export function mapped(run: Run, map: Test): Run {
  return (emit) => run((item) => emit(map(item)))
}

export function filtered(run: Run, test: Test): Run {
  return (emit) => run((item) => (test(item) ? emit(item) : undefined))
}

export function scanned(run: Run, initial: unknown, next: (state: unknown, item: unknown) => unknown): Run {
  return (emit) => {
    let state = initial
    return run((item) => emit((state = next(state, item))))
  }
}

export function taken(run: Run, count: number): Run {
  return function* (emit) {
    let left = count
    let end: End
    function* last(wait: Wait): Operation<End, unknown> {
      end = yield* waited(wait)
      return STOP
    }
    if (left === 0) return undefined
    const over = yield* run((item) => (--left > 0 ? emit(item) : last(emit(item))))
    return left > 0 ? over : end
  }
}

/** @param isWanted Whether to go on with it. */
export function takenWhile(run: Run, isWanted: Test): Run {
  return function* (emit) {
    let isOver = false
    const end = yield* run((item) => {
      if (isWanted(item)) return emit(item)
      isOver = true
      return STOP
    })
    return isOver ? undefined : end
  }
}

/** @param isDropped Asked until it returns false. */
export function droppedWhile(run: Run, isDropped: Test): Run {
  return (emit) => {
    let isDropping = true
    return run((item) => {
      if (isDropping && isDropped(item)) return undefined
      isDropping = false
      return emit(item)
    })
  }
}

export function dropped(run: Run, count: number): Run {
  return (emit) => {
    let left = count
    return run((item) => (left > 0 ? void left-- : emit(item)))
  }
}

export function concatenated(runs: readonly Run[]): Run {
  return function* (emit) {
    for (const run of runs) if ((yield* within(() => run(emit))) === STOP) return STOP
    return undefined
  }
}

/** Lists of `itemsMax` items; the last one may have fewer. */
export function grouped(run: Run, itemsMax: number): Run {
  return function* (emit) {
    let items: unknown[] = []
    const end = yield* run((item) => {
      if (items.push(item) < itemsMax) return undefined
      const full = items
      items = []
      return emit(full)
    })
    return end === STOP || items.length === 0 ? end : yield* waited(emit(items))
  }
}

/** At most `items` in any `perMs`; one that comes too early waits, or is dropped. */
export function throttled(run: Run, items: number, perMs: number, isDropping: boolean): Run {
  return (emit) => {
    const intervalMs = perMs / items
    // When the last one was due, had all kept their distance; those of a burst are due later.
    let dueMs = -Infinity
    function* later(item: unknown, delayMs: number): Operation<End, unknown> {
      yield* sleep(delayMs)
      return yield* waited(emit(item))
    }
    return run((item) => {
      const nowMs = turn.scheduler.nowMs()
      const nextMs = Math.max(nowMs, dueMs + intervalMs)
      const delayMs = nextMs - nowMs - (perMs - intervalMs)
      if (delayMs > 0 && isDropping) return undefined
      dueMs = nextMs
      return delayMs > 0 ? later(item, delayMs) : emit(item)
    })
  }
}

/** Continues with what `handle` makes of the stream's failure. */
export function caught(run: Run, handle: (error: unknown) => Run): Run {
  return function* (emit) {
    const guard = new Guard(emit)
    const exit = yield* exitWithin(() => run(guard.emit))
    const failure = guard.failureIn(exit)
    return yield* failure === undefined ? fromExit(exit) : handle(failure.error)(emit)
  }
}

/** Runs the stream again after a failure, as the schedule decides; it begins anew behind an item. */
export function retried(run: Run, schedule: Schedule): Run {
  return function* (emit) {
    const begun = () => schedule.start({ random: () => turn.scheduler.random() })
    for (let driver = begun(); ;) {
      const guard = new Guard(emit)
      const exit = yield* exitWithin(() => run(guard.emit))
      const failure = guard.failureIn(exit)
      if (guard.hasEmitted) driver = begun()
      const delayMs = failure === undefined ? undefined : driver.next(failure.error, turn.scheduler.nowMs())
      if (delayMs === undefined) return yield* fromExit(exit)
      yield* sleep(delayMs)
    }
  }
}

/** Collects what a run emits. */
export function* folded<State>(
  run: Run,
  initial: State,
  next: (state: State, item: never) => State,
): Operation<State, unknown> {
  let state = initial
  yield* run((item) => void (state = next(state, item as never)))
  return state
}

export function* first(run: Run): Operation<unknown, unknown> {
  let found: unknown
  const keep: Emit = (item) => {
    found = item
    return STOP
  }
  yield* run(keep)
  return found
}
