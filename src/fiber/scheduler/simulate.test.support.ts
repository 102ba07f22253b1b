/**
 * A runtime for tests: time is virtual, and a seed decides every interleaving that the real one may have.
 *
 * The seed chooses who of the ready goes next, after how many steps a fiber has to step aside, and what
 * `random` returns. The clock moves only when nobody is ready, to the next sleeper: hours pass at once. The
 * same seed makes the same run: what a seed has found it finds again. Only what fibers do is decided here;
 * real I/O inside a program runs as it likes. Internal: its form may change.
 */
import { AssertionFailure, generator } from '../../base/index.ts'
import { dumpText } from '../core/dump.ts'
import type { Exit } from '../core/exit.ts'
import { type AnyBody, type FailureOf, type ValueOf, fork } from '../core/fork.ts'
import type { LostFiberError } from './on-error.ts'
import { type Ready, Scheduler, turn } from './scheduler.ts'

/** Most steps of a run before it counts as endless. */
const STEPS_OF_RUN_MAX = 1_000_000
/** Most steps that a fiber makes before it may have to step aside. */
const STEPS_AT_ONCE_MAX = 4

/** What a run found out. */
export interface Run<A, E> {
  readonly seed: number
  readonly exit: Exit<A, E>
  /** How far the clock went, in ms. */
  readonly nowMs: number
  /** How many times a fiber went on. */
  readonly stepCount: number
  /** Errors that nobody received. */
  readonly reported: readonly LostFiberError[]
}

class SeededScheduler extends Scheduler {
  readonly reported: LostFiberError[] = []
  readonly #ready: Ready[] = []
  readonly #later: (() => void)[] = []
  readonly #next: () => number
  #nowMs = 0

  constructor(seed: number) {
    super()
    this.#next = generator(seed)
  }

  override push(ready: Ready): void {
    this.#ready.push(ready)
  }

  override beginTurn(): boolean {
    return false
  }

  override nowMs(): number {
    return this.#nowMs
  }

  override random(): number {
    return this.#next()
  }

  override later(body: () => void): void {
    this.#later.push(body)
  }

  override report(error: LostFiberError): void {
    this.reported.push(error)
  }

  protected override arm(): void {}

  /** Whether nobody is ready or waits for the turn of I/O. */
  get isIdle(): boolean {
    return this.#ready.length === 0 && this.#later.length === 0
  }

  /** How many steps the next fiber may make at once. */
  grant(): void {
    turn.steps = 1 + Math.floor(this.random() * STEPS_AT_ONCE_MAX)
  }

  /** Let one of the ready go on; false when nobody is ready. */
  step(): boolean {
    const { length } = this.#ready
    if (length === 0) return false
    const index = Math.floor(this.random() * length)
    const chosen = this.#ready[index]
    this.#ready[index] = this.#ready[length - 1]
    this.#ready.pop()
    this.grant()
    chosen.resume()
    return true
  }

  /** Nobody is ready: run what waits for the turn of I/O, else go to the next sleeper. False: neither is. */
  advance(): boolean {
    const later = this.#later.splice(0)
    for (const body of later) body()
    if (later.length > 0) return true
    const { firstMs } = this.timers
    if (firstMs === undefined) return false
    this.#nowMs = Math.max(this.#nowMs, firstMs)
    this.wakeSleepers()
    return true
  }
}

/**
 * Run `body` to its end under `seed`. The whole thread's fibers belong to this run until it ends: nothing
 * else may fork meanwhile.
 * @throws {AssertionFailure} When it waits for what never comes (with the tree of fibers), or does not end.
 */
export async function simulate<const B extends AnyBody>(
  seed: number,
  body: B,
): Promise<Run<ValueOf<B>, FailureOf<B>>> {
  const outer = turn.scheduler
  const scheduler = new SeededScheduler(seed)
  turn.scheduler = scheduler
  scheduler.isDraining = true
  let stepCount = 0
  try {
    scheduler.grant()
    const fiber = fork(body)
    fiber.observe()
    for (; ; stepCount += 1) {
      if (stepCount > STEPS_OF_RUN_MAX) throw new AssertionFailure(`seed ${seed}: the program does not end`)
      if (scheduler.step()) continue
      if (fiber.exit === undefined) await promisesSettled()
      if (scheduler.step()) continue
      if (fiber.exit !== undefined && scheduler.isIdle) break
      if (!scheduler.advance()) throw new AssertionFailure(`seed ${seed}: everybody waits\n${dumpText()}`)
    }
    const { exit } = fiber
    const { reported } = scheduler
    return { seed, exit: exit as never, nowMs: scheduler.nowMs(), stepCount, reported }
  } finally {
    turn.scheduler = outer
    turn.steps = 0
  }
}

/** Seeds to try, and where to begin. */
export interface SeedRange {
  /** Default 1. */
  readonly first?: number
  /** Default 1000. */
  readonly count?: number
}

/**
 * Returns the first run, over many seeds, for which `isWrong` returns true; `undefined` otherwise. Its seed
 * repeats it in {@link simulate}.
 */
export async function findRun<const B extends () => AnyBody>(
  program: B,
  isWrong: (run: Run<ValueOf<ReturnType<B>>, FailureOf<ReturnType<B>>>) => boolean,
  { first = 1, count = 1000 }: SeedRange = {},
): Promise<Run<ValueOf<ReturnType<B>>, FailureOf<ReturnType<B>>> | undefined> {
  for (let seed = first; seed < first + count; seed += 1) {
    const run = await simulate(seed, program() as ReturnType<B>)
    if (isWrong(run)) return run
  }
  return undefined
}

/** Promises of the program that can settle without the world have settled. */
function promisesSettled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
