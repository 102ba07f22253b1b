/**
 * One body of fibers under one seed, for tests of fibers: a run of `corespun/test` without a search.
 *
 * The seed chooses who of the ready goes next, after how many steps a fiber has to step aside, and what
 * `random` returns. The clock moves when nobody is ready, to the next sleeper: hours pass at once.
 */
import { AssertionFailure } from '../base/index.ts'
import {
  type AnyBody,
  type Exit,
  type FailureOf,
  type LostFiberError,
  type ValueOf,
  dumpText,
  fork,
} from '../fiber/index.ts'
import { seedFibers } from './fibers.ts'
import { Play } from './play.ts'
import { strategyOf } from './strategies.ts'

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
  /** How many times something went on. */
  readonly stepCount: number
  /** Errors that nobody received. */
  readonly reported: readonly LostFiberError[]
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
  const strategy = strategyOf('random', seed, 1, { depth: 1, preemptionsMax: 0, stall: 0 })
  const limits = { stepsMax: STEPS_OF_RUN_MAX, clockStepMs: 0, leaks: false, isShown: false }
  const play = new Play({ seed, strategy, ...limits })
  const reported: LostFiberError[] = []
  const report = (error: LostFiberError): void => void reported.push(error)
  const restore = seedFibers(play, { stepsMax: STEPS_AT_ONCE_MAX, report })
  let exit: unknown
  try {
    const ending = await play.run(async () => {
      const fiber = fork(body)
      fiber.observe()
      exit = await fiber.await()
    })
    if (ending.kind === 'livelock') throw new AssertionFailure(`seed ${seed}: the program does not end`)
    if (ending.kind === 'deadlock') throw new AssertionFailure(`seed ${seed}: everybody waits\n${dumpText()}`)
    if (ending.kind === 'failed') throw ending.error
    return { seed, exit: exit as never, nowMs: play.nowMs(), stepCount: play.steps, reported }
  } finally {
    restore()
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
