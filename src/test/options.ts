/**
 * What a check is asked for, complete and checked.
 *
 * Wrong values are refused by name before anything runs.
 */
import { type Kind, flag, integer, milliseconds, oneOf, optionsOf } from '../base/index.ts'
import { wrong } from './errors.ts'
import { STRATEGIES } from './strategies.ts'

/** What goes wrong in a network, each a share of all messages. */
export interface NetworkFaults {
  /** How many are lost; default 0. */
  readonly loss?: number
  /** How many arrive twice; default 0. */
  readonly repeat?: number
  /** The longest delay in ms, so messages pass each other; default 5. */
  readonly delayMs?: number
  /** How many messages of `fetch()` reset their connection instead; default 0. */
  readonly resets?: number
}

/** Options of {@link check}. */
export interface CheckOptions {
  /** How many seeds are played, 1 to 999,999,999; default 1000. CORESPUN_SEED(S) replaces it. */
  readonly seeds?: number
  /** How the next to go on is chosen; default `'mixed'`: all of them in turn. */
  readonly strategy?: 'mixed' | 'random' | 'pct' | 'rounds'
  /** How many orderings a bug needs, for `pct`; default 3. */
  readonly depth?: number
  /** How often `rounds` pre-empts; default 2. */
  readonly preemptionsMax?: number
  /** Steps after which a run counts as endless; default 10,000. */
  readonly stepsMax?: number
  /** How likely time passes although tasks could go on, from 0 to 1; default 0.02. */
  readonly stall?: number
  /** Whether timers, `Date`, `fetch`, and random numbers of Node follow the seed; default true. */
  readonly mock?: boolean
  /**
   * How far the clock of the day (`now()`, `Date`) steps at most, in ms, at one of 20 moves. Default 0.
   */
  readonly clockStepMs?: number
  /**
   * Whether a run fails that leaves tasks, fibers, timers, waits or servers open. Default false.
   */
  readonly leaks?: boolean
  /** Of `connect()`, `fetch()` and `serve()`. */
  readonly network?: NetworkFaults
}

/** A share of all cases. */
export function share(otherwise: number): Kind<number> {
  const accepts = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1
  return { expected: 'a number from 0 to 1', accepts, default: otherwise }
}

const DELAY_MS_MAX = 60_000
/** A year. */
const CLOCK_STEP_MS_MAX = 31_536_000_000
const KINDS = {
  seeds: integer(1, 999_999_999, 1000),
  strategy: oneOf<NonNullable<CheckOptions['strategy']>>([...STRATEGIES, 'mixed'], 'mixed'),
  depth: integer(1, 10, 3),
  preemptionsMax: integer(0, 100, 2),
  stepsMax: integer(1, 10_000_000, 10_000),
  stall: share(0.02),
  mock: flag(true),
  clockStepMs: integer(0, CLOCK_STEP_MS_MAX, 0),
  leaks: flag(false),
  network: {
    expected: 'an object',
    accepts: (value: unknown) => typeof value === 'object' && value !== null,
    default: {},
  },
}
const NETWORK = { loss: share(0), repeat: share(0), delayMs: milliseconds(DELAY_MS_MAX, 5), resets: share(0) }

/** @throws {CheckError} `CHECK_ARGUMENT`. */
export function checkOptions(options: CheckOptions | undefined) {
  const checked = optionsOf(options ?? {}, KINDS, wrong, 'check()')
  return { ...checked, network: optionsOf(checked.network, NETWORK, wrong, 'check()', 'network') }
}

export type Settings = ReturnType<typeof checkOptions>
