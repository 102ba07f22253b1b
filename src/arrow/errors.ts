/**
 * What arrows refuse, and the failure of `timeout`.
 *
 * Failures and defects of stages are not here: they arrive as what they were. A function that cannot travel
 * is refused by the transport's FunctionError, which names what it captures.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The facts of each code. */
export type ArrowCodes = {
  /** An argument or an option is not what it must be. */
  ARROW_ARGUMENT: ArgumentFacts
  /** `timeout` ran out before the arrow ended. A failure: `catchAll` may handle it. */
  ARROW_TIMEOUT: { readonly timeoutMs: number }
  /** A plan came to a thread in a form that it does not know. */
  ARROW_PLAN: { readonly reason: string }
}

const SENTENCES: Sentences<ArrowCodes> = {
  ARROW_ARGUMENT: argumentSentence,
  ARROW_TIMEOUT: (f) => `the arrow did not end within ${f.timeoutMs} ms`,
  ARROW_PLAN: (f) => `the plan of a placed arrow cannot be read: ${f.reason}`,
}

/** An arrow was not made, or ran out of time; `code` says which. */
export class ArrowError<Code extends keyof ArrowCodes = keyof ArrowCodes> extends CorespunError<
  ArrowCodes,
  Code
> {
  /** @param code The failure. @param facts What it is about. @param options `cause`. */
  constructor(code: Code, facts: ArrowCodes[Code], options?: ErrorOptions) {
    super(SENTENCES, code, facts, options)
  }

  override get name(): string {
    return 'ArrowError'
  }
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new ArrowError('ARROW_ARGUMENT', facts))
