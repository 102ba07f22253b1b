/**
 * What a check finds, and what it refuses.
 *
 * Each error of a run names its seed, so it can be played again.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** What is known about a run that has failed. */
export interface CheckFacts {
  /** The number that plays the run again; 0 is the run without any choice. */
  readonly seed: number
  /** Why it has failed, in one line. */
  readonly reason: string
  /** What its tasks did, after the schedule was shortened. */
  readonly story: string
  /** How to play it again. */
  readonly command: string
  /** How many times the shortened schedule leaves the plain one. */
  readonly deviations: number
  /** A number that follows from every step of the run as it was found. */
  readonly trace: number
}

/** The codes of {@link CheckError} and the facts of each. */
export interface CheckCodes {
  /** An argument or an option has a wrong value. */
  CHECK_ARGUMENT: ArgumentFacts
  /** The callback, a task or a fiber that nobody joins has failed, or nobody handles a rejection: `cause`. */
  CHECK_FAILED: CheckFacts
  /** Nothing can go on, no timer is left, and the callback has not ended. */
  CHECK_DEADLOCK: CheckFacts
  /** The callback has not ended after `stepsMax` steps. */
  CHECK_LIVELOCK: CheckFacts
  /** With the option `leaks`: the callback has ended, and something is open. */
  CHECK_LEAK: CheckFacts
  /** What `within()` of a world bounds has not ended in time. */
  CHECK_LATE: { readonly what: string; readonly ms: number }
  /** The program has asked for what no seed decides, such as a socket, a file or a thread. */
  CHECK_REAL: CheckFacts & { readonly resource: string; readonly where: string }
  /** The same seed has made another run: the program reads what no seed decides. */
  CHECK_NOT_REPEATED: CheckFacts
  /** A history does not follow from its model. */
  CHECK_HISTORY: { readonly reason: string; readonly history: string }
  /** The task was killed by `kill()`. */
  CHECK_KILLED: { readonly task: string }
  /** `check()` was called in a run of another one. */
  CHECK_NESTED: { readonly where: string }
  /** A function of a world was called outside of its run. */
  CHECK_OUTSIDE: { readonly call: string }
}

const found = ({ reason, story, command }: CheckFacts): string =>
  `${reason}\n${story}\nplay it again: ${command}`

const SENTENCES: Sentences<CheckCodes> = {
  CHECK_ARGUMENT: argumentSentence,
  CHECK_FAILED: (facts) => found(facts),
  CHECK_DEADLOCK: (facts) => found(facts),
  CHECK_LIVELOCK: (facts) => found(facts),
  CHECK_LEAK: (facts) => found(facts),
  CHECK_LATE: ({ what, ms }) => `${what} has not ended within ${ms} ms of the run's time`,
  CHECK_REAL: (facts) => found(facts),
  CHECK_NOT_REPEATED: (facts) => found(facts),
  CHECK_HISTORY: ({ reason, history }) => `${reason}\n${history}`,
  CHECK_KILLED: ({ task }) => `the task ${task} was killed`,
  CHECK_NESTED: ({ where }) =>
    `check() at ${where || 'an unknown line'} was called in a run of another check(), whose world has ` +
    'spawn() for further tasks',
  CHECK_OUTSIDE: ({ call }) =>
    `${call} outside of its check(); call it in the callback, and in what that calls`,
}

/**
 * An error of `check()`. Decide by `code`; `facts` has the seed, the story, and the command that plays it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { CheckError, check } from 'corespun/test'
 *
 * const isStuck = (error: unknown) => error instanceof CheckError && error.code === 'CHECK_DEADLOCK'
 * await assert.rejects(check({ seeds: 1 }, () => new Promise(() => {})), isStuck)
 * ```
 */
export class CheckError<Code extends keyof CheckCodes = keyof CheckCodes> extends CorespunError<
  CheckCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new CheckError('CHECK_ARGUMENT', facts))
