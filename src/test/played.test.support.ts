/**
 * How suites of this package use `corespun/test`: under seeds, or as one run without a search, for scripts
 * and for bodies of fibers that a property has generated.
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
import type { Clock } from '../fleet/internal.ts'
import { check } from './check.ts'
import { seedFibers } from './fibers.ts'
import { Play, current } from './play.ts'
import { strategyOf } from './strategies.ts'

export { check } from './check.ts'
export type { World } from './world.ts'

/** Most steps of a run before it counts as endless: machines are played for minutes. */
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

/** Time passes when nothing else can go on: a lease does not end although its holder could extend it. */
function playOf(seed: number): Play {
  const strategy = strategyOf('random', seed, 1, { depth: 1, preemptionsMax: 0, stall: 0 })
  return new Play({
    seed,
    strategy,
    stepsMax: STEPS_OF_RUN_MAX,
    clockStepMs: 0,
    leaks: false,
    isShown: false,
  })
}

/** Its timers are events of a simulated network: each is a step, in the order of time. */
function clockOf(play: Play): Clock {
  const after: Clock['after'] = (ms, run) => play.after(ms, () => current.run(play.root, run))
  return { nowMs: () => play.nowMs(), after }
}

/**
 * Play `work` under so many seeds, or those that CORESPUN_SEED and CORESPUN_SEEDS name.
 * @param isParted Whether a run of the suites that does a part plays a part of them.
 */
export async function seeded(
  seeds: number,
  work: (seed: number, clock: Clock) => unknown,
  { isParted = false } = {},
): Promise<void> {
  if (isParted) process.env['CORESPUN_SEEDS_PART'] ??= process.env['CORESPUN_TEST_PART'] ?? '1/1'
  await check({ seeds, strategy: 'random', stall: 0, stepsMax: STEPS_OF_RUN_MAX }, ({ seed }) =>
    work(seed, clockOf(current.getStore()!.play)),
  )
}

/** Play a script once, to its end, in the time of `clock`. */
export async function scripted(work: (clock: Clock) => Promise<unknown>, seed = 1): Promise<void> {
  const play = playOf(seed)
  await played(play, { stepsMax: STEPS_AT_ONCE_MAX }, () => work(clockOf(play)))
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
  const play = playOf(seed)
  const reported: LostFiberError[] = []
  const report = (error: LostFiberError): void => void reported.push(error)
  let exit: unknown
  await played(play, { stepsMax: STEPS_AT_ONCE_MAX, report }, async () => {
    const fiber = fork(body)
    fiber.observe()
    exit = await fiber.await()
    // Those that it has left behind, too.
    do await play.root.step('the rest')
    while (!play.isIdle)
  })
  return { seed, exit: exit as never, nowMs: play.nowMs(), stepCount: play.steps, reported }
}

async function played(
  play: Play,
  fibers: Parameters<typeof seedFibers>[1],
  work: () => unknown,
): Promise<void> {
  const restore = seedFibers(play, fibers)
  const { seed } = play
  try {
    const ending = await play.run(work)
    if (ending.kind === 'livelock') throw new AssertionFailure(`seed ${seed}: it does not end`)
    if (ending.kind === 'deadlock') throw new AssertionFailure(`seed ${seed}: everybody waits\n${dumpText()}`)
    if (ending.kind === 'failed') throw ending.error
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
