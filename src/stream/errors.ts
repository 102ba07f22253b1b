/**
 * What streams refuse. Failures of sources and of the functions of users are not here: they arrive as what
 * they were.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The codes of {@link StreamError} and the facts of each. */
export type StreamCodes = {
  /** An argument or an option is not what it must be. */
  STREAM_ARGUMENT: ArgumentFacts
  /** `groupBy` has received an item of one key more than `groupsMax`. A failure: `catchAll` can handle it. */
  STREAM_GROUPS_FULL: { readonly groupsMax: number }
  /** `timeout` has waited too long for an item. A failure: `catchAll` can handle it. */
  STREAM_TIMEOUT: { readonly timeoutMs: number }
  /** A stream that can be read once was read again: a branch of `broadcast`, a group of `groupBy`. */
  STREAM_TAKEN: { readonly stream: string }
  /** The destination of `runInto` was closed after `itemsCount` items. A failure. */
  STREAM_CLOSED: { readonly itemsCount: number }
}

const SENTENCES: Sentences<StreamCodes> = {
  STREAM_ARGUMENT: argumentSentence,
  STREAM_GROUPS_FULL: (f) =>
    `the items of groupBy() have more than ${f.groupsMax} keys; raise groupsMax, or group by fewer keys`,
  STREAM_TIMEOUT: (f) =>
    `no item came within ${f.timeoutMs} ms (timeout()); raise the timeout, or handle it with catchAll()`,
  STREAM_TAKEN: (f) => `${f.stream} is being read, or was; it can be read once`,
  STREAM_CLOSED: (f) =>
    `the destination of runInto() was closed after ${f.itemsCount} items, before the stream had ended`,
}

/**
 * An error of streams. Decide by `code`; `facts` has the details.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Stream, StreamError } from 'corespun/stream'
 *
 * const isRefused = (error: unknown) => error instanceof StreamError && error.code === 'STREAM_ARGUMENT'
 * assert.throws(() => Stream.of(1).take(-1), isRefused)
 * ```
 */
export class StreamError<Code extends keyof StreamCodes = keyof StreamCodes> extends CorespunError<
  StreamCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new StreamError('STREAM_ARGUMENT', facts))
