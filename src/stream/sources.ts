/**
 * Where items come from: iterables, asynchronous ones, streams of the web and of Node, bodies.
 *
 * A source is opened when its run begins, read one item at a time and only when one is needed, and closed
 * once, unless it has ended or failed by itself. What it throws or rejects with is a failure.
 */
import { type ItemReader, Turns, isItems, promiseOf, readerFor, resultOf } from '../base/index.ts'
import {
  Exit,
  type Operation,
  type Schedule,
  currentFiber,
  sleep,
  uninterruptibleMask,
  yieldNow,
  ensuring,
} from '../fiber/index.ts'
import {
  News,
  Op,
  Settling,
  type Waiter,
  type Yieldable,
  failedFrom,
  running,
  turn,
  within,
} from '../fiber/internal.ts'
import { type Emit, type End, type Pending, type Run, STOP, type Wait, isPending, waited } from './run.ts'

/** The run of anything that items can be read from. */
export function runOf(source: object): Run {
  if (isItems(source)) return (emit) => itemsOf(source, emit)
  return (emit) => opened(source, emit)
}

function* itemsOf(items: ArrayLike<unknown>, emit: Emit): Operation<End, unknown> {
  const turns = new Turns()
  for (let index = 0; index < items.length; index++) {
    let end: End = emit(items[index])
    if (isPending(end as Wait)) end = yield* end as Pending
    if (end === STOP) return STOP
    if (isTurnDue(turns)) yield* yieldNow()
  }
  return undefined
}

/** Whether to let others run: a source that never waits would keep them, and timers and I/O, from it. */
function isTurnDue(turns: Turns): boolean {
  if (turns.isDue()) {
    turn.steps = 0
    turns.had()
  }
  return --turn.steps <= 0
}

/** The run of what `open` returns, or a promise of it; `toRun` checks that. */
export function openedBy(open: (signal: AbortSignal) => unknown, toRun: (made: unknown) => Run): Run {
  return function* (emit) {
    const fiber = currentFiber('a stream')
    let made: unknown
    try {
      made = open.length > 0 ? open(fiber.signal) : (open as () => unknown)()
    } catch (error) {
      throw fiber.raise(Exit.failure(error))
    }
    const promise = promiseOf(made)
    // No step lies between the opening of a source and its reading: an interrupt there would leave it open.
    return yield* toRun(promise === undefined ? made : yield* arrivedBy(promise))(emit)
  }
}

function* arrivedBy(promise: Promise<unknown>): Operation<unknown, unknown> {
  let hasArrived = false
  try {
    const made = yield* new Settling(promise, true) as Yieldable<unknown, unknown>
    hasArrived = true
    return made
  } finally {
    // An interrupted fiber drops what comes late.
    if (!hasArrived) promise.then((late) => readerFor(late as object).close()).catch(() => {})
  }
}

function* opened(source: object, emit: Emit): Operation<End, unknown> {
  let reader: ItemReader
  try {
    reader = readerFor(source)
  } catch (error) {
    throw currentFiber('a stream').raise(Exit.failure(error))
  }
  const reading = reader.isSync ? new Iteration(reader) : new Reading(reader, emit)
  return yield* ensuring(reading.run(emit), () => reading.close())
}

/** Reads a synchronous iterator. */
class Iteration {
  readonly #reader: ItemReader
  #isOpen = true

  constructor(reader: ItemReader) {
    this.#reader = reader
  }

  *run(emit: Emit): Operation<End, unknown> {
    const turns = new Turns()
    for (;;) {
      const next = this.#next()
      if (next.done === true) return undefined
      let end: End = emit(next.value)
      if (isPending(end as Wait)) end = yield* end as Pending
      if (end === STOP) return STOP
      if (isTurnDue(turns)) yield* yieldNow()
    }
  }

  #next(): IteratorResult<unknown> {
    this.#isOpen = false
    try {
      const next = resultOf(this.#reader.next())
      this.#isOpen = next.done !== true
      return next
    } catch (error) {
      throw currentFiber('a stream').raise(Exit.failure(error))
    }
  }

  close(): unknown {
    return this.#isOpen ? this.#reader.close() : undefined
  }
}

/**
 * Reads an asynchronous source. Its fiber is not resumed for each item: the item is passed on in the reaction
 * of its promise, in the name of the fiber, and the next one is read at once, or when the reader of a passage
 * lets it go on.
 */
class Reading extends Op<Wait> {
  readonly #reader: ItemReader
  readonly #emit: Emit
  readonly #turns = new Turns()
  #waiter: Waiter | undefined
  /** An item is being read. */
  #isReading = false
  /** It has ended or failed by itself. */
  #isOver = false
  /** What it waits for on behalf of the fiber: a passage that is full. */
  #full: News<unknown> | undefined
  #result: Wait
  #thrown: { readonly error: unknown; readonly isOfSource: boolean } | undefined

  constructor(reader: ItemReader, emit: Emit) {
    super()
    this.#reader = reader
    this.#emit = emit
  }

  *run(): Operation<End, unknown> {
    for (;;) {
      let end: End = yield* this
      if (this.#isOver) return undefined
      if (isPending(end as Wait)) end = yield* end as Pending
      if (end === STOP) return STOP
    }
  }

  close(): unknown {
    if (this.#isOver) return undefined
    this.#isOver = true
    const closed = this.#reader.close(this.#isReading ? 'the stream was interrupted' : undefined)
    if (!this.#isReading) return closed
    // What becomes of the item that is being read, a failure too, is nobody's; an iterator may never have it.
    const quiet = closed.catch(() => {})
    return this.#reader.closesLate ? undefined : quiet
  }

  park(fiber: Waiter): void {
    this.#waiter = fiber
    this.#turns.had()
    this.#read()
  }

  unpark(): boolean {
    this.#waiter = undefined
    const full = this.#full
    this.#full = undefined
    return full?.unpark() ?? true
  }

  /** What it waits for on behalf of the fiber has come. */
  makeReady(): void {
    const end = this.#full?.take()
    this.#full = undefined
    if (end === STOP) this.#wake(STOP)
    else this.#goOn()
  }

  /** @throws What the source has failed with, or what a stage has thrown. */
  take(fiber: Waiter): Wait {
    const thrown = this.#thrown
    if (thrown !== undefined) throw thrown.isOfSource ? fiber.raise(failedFrom(thrown.error)) : thrown.error
    return this.#result
  }

  describe(): string {
    return 'the next item of a source'
  }

  #read(): void {
    this.#isReading = true
    try {
      Promise.resolve(this.#reader.next()).then(this.#arrived, this.#failed)
    } catch (error) {
      this.#failed(error)
    }
  }

  readonly #failed = (error: unknown): void => {
    this.#isReading = false
    this.#isOver = true
    this.#thrown = { error, isOfSource: true }
    this.#wake(undefined)
  }

  readonly #arrived = (result: unknown): void => {
    this.#isReading = false
    const fiber = this.#waiter
    // It was interrupted: the item is dropped.
    if (fiber === undefined) return
    const outer = running.fiber
    let isOfSource = true
    let wait: Wait
    try {
      const next = resultOf(result)
      if (next.done === true) this.#isOver = true
      else {
        const { value } = next
        isOfSource = false
        running.fiber = fiber
        wait = this.#emit(value)
      }
    } catch (error) {
      this.#isOver ||= isOfSource
      this.#thrown = { error, isOfSource }
    }
    running.fiber = outer
    // What a stage does may have interrupted the fiber.
    if (this.#waiter === undefined) return
    if (wait instanceof News) {
      this.#full = wait
      wait.park(this as unknown as Waiter)
    } else if (wait !== undefined || this.#isOver || this.#thrown !== undefined) this.#wake(wait)
    else this.#goOn()
  }

  #goOn(): void {
    if (this.#turns.isDue()) turn.steps = 0
    if (--turn.steps > 0) this.#read()
    else this.#wake(undefined)
  }

  #wake(result: Wait): void {
    const fiber = this.#waiter
    if (fiber === undefined) return
    this.#waiter = undefined
    this.#result = result
    const { scheduler } = turn
    if (scheduler.beginTurn()) scheduler.runTurn(fiber)
    else fiber.makeReady()
  }
}

/** The values of a body that runs again and again, as a schedule decides. */
export function repeated(body: unknown, schedule: Schedule | undefined): Run {
  return function* (emit) {
    const driver = schedule?.start({ random: () => turn.scheduler.random() })
    for (;;) {
      const value = yield* within(body)
      if ((yield* waited(emit(value))) === STOP) return STOP
      const delayMs = driver === undefined ? 0 : driver.next(value, turn.scheduler.nowMs())
      if (delayMs === undefined) return undefined
      if (delayMs > 0) yield* sleep(delayMs)
    }
  }
}

/** One item, which is acquired before and released behind what becomes of it. */
export function acquired(
  acquire: unknown,
  release: (value: unknown, exit: Exit<unknown, unknown>) => unknown,
): Run {
  return function* (emit) {
    const run = uninterruptibleMask(function* (restore) {
      const value = yield* within(acquire)
      const used = restore(function* () {
        return yield* waited(emit(value))
      })
      return yield* ensuring(used, (exit) => release(value, exit))
    })
    return yield* run
  }
}
