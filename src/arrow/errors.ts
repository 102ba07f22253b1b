/**
 * The errors of arrows: wrong arguments, and the failure of `timeout`.
 *
 * Failures and defects of stages are not wrapped. A function that cannot be transported is refused by the
 * transport's FunctionError, which names what it captures.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The codes of {@link ArrowError} and the facts of each. */
export type ArrowCodes = {
  /** An argument or an option has the wrong type or value. */
  ARROW_ARGUMENT: ArgumentFacts
  /** The arrow took longer than its `timeout`. A failure: `catchAll` can handle it. */
  ARROW_TIMEOUT: { readonly timeoutMs: number }
  /** A stage in front of `on(zone)` cannot run in that zone of other machines. */
  ARROW_NOT_HOSTED: {
    readonly zone: string
    readonly stage: string
    readonly reason: string
    readonly remedy: string
  }
  /** A thread has received an arrow for a zone that it cannot read. */
  ARROW_PLAN: { readonly reason: string }
}

const SENTENCES: Sentences<ArrowCodes> = {
  ARROW_ARGUMENT: argumentSentence,
  ARROW_TIMEOUT: (f) =>
    `the arrow did not end within ${f.timeoutMs} ms (timeout()); ` +
    'raise the timeout, or handle it with catchAll()',
  ARROW_NOT_HOSTED: (f) =>
    `${f.stage} cannot run in the far zone ${JSON.stringify(f.zone)}: ${f.reason}; ${f.remedy}`,
  ARROW_PLAN: (f) =>
    `cannot read the arrow sent to this zone: ${f.reason}; ` +
    'run one release of corespun in all threads and on all hosts',
}

/**
 * A wrong argument, or the failure of `timeout`; see its `code`.
 * @example
 * ```ts
 * import { ArrowError, liftAsync } from 'corespun/arrow'
 * import { setTimeout } from 'node:timers/promises'
 *
 * const slow = liftAsync(async (_: string, { signal }) => setTimeout(1000, 'done', { signal }))
 * const exit = await slow.timeout(5).runExit('x')
 * const error = exit.kind === 'failure' ? exit.error : undefined
 * console.log(error instanceof ArrowError && error.code) // ARROW_TIMEOUT
 * ```
 */
export class ArrowError<Code extends keyof ArrowCodes = keyof ArrowCodes> extends CorespunError<
  ArrowCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

export const wrong = refuser((facts) => new ArrowError('ARROW_ARGUMENT', facts))
