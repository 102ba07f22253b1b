/**
 * What locks, semaphores, channels and counters refuse.
 *
 * Decide by `code`, read `facts`; the sentence is for people and names the thing.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** Which thing an error is about: what it is, and its name (`''` when it has none). */
export interface Which {
  readonly kind: string
  readonly name: string
}

/** The facts of each code. */
export type SyncCodes = {
  /** Not had within `timeoutMs`. */
  SYNC_TIMEOUT: Which & { readonly timeoutMs: number }
  /** A form that blocks the thread, called in the main thread without `{allowBlocking: true}`. */
  SYNC_BLOCKING: Which
  /** The caller's own code, or thread, holds it or stands in line for it: it would wait for itself. */
  SYNC_OWN: Which
  /** A synchronous form was given a function that returned a promise; it was released before that settled. */
  SYNC_ASYNC_BODY: Which
  /** The channel is closed. */
  SYNC_CLOSED: Which
  /** There is one of that name with another capacity. */
  SYNC_DIFFERENT: Which & { readonly expected: number; readonly found: number }
  /** The handle arrived after the thing was forgotten. */
  SYNC_UNKNOWN: { readonly kind: string }
  /** A counter would leave the integers that a number holds exactly. */
  SYNC_COUNTER_RANGE: Which
  /** An argument is not what it must be. */
  SYNC_ARGUMENT: ArgumentFacts
}

const SENTENCES: Sentences<SyncCodes> = {
  SYNC_TIMEOUT: (f) => `${called(f)} was not to be had within ${f.timeoutMs} ms`,
  SYNC_BLOCKING: (f) =>
    `${called(f)}: the synchronous forms block the thread, and this is the main thread; ` +
    'use the asynchronous ones, or pass {allowBlocking: true}',
  SYNC_OWN: (f) => `${called(f)} is held or waited for by the caller itself, which would wait for ever`,
  SYNC_ASYNC_BODY: (f) =>
    `${called(f)}: the function of a synchronous guard returned a promise; the guard has ended. Use guard()`,
  SYNC_CLOSED: (f) => `${called(f)} is closed`,
  SYNC_DIFFERENT: (f) => `${called(f)} exists with a capacity of ${f.found}, not ${f.expected}`,
  SYNC_UNKNOWN: (f) => `the ${f.kind} that this handle stands for has been forgotten`,
  SYNC_COUNTER_RANGE: (f) => `${called(f)} would leave the safe integers; it has not changed`,
  SYNC_ARGUMENT: argumentSentence,
}

function called({ kind, name }: Which): string {
  return name === '' ? `a ${kind} without a name` : `the ${kind} '${name}'`
}

/** A lock, semaphore, channel or counter refused. */
export class SyncError<Code extends keyof SyncCodes = keyof SyncCodes> extends CorespunError<
  SyncCodes,
  Code
> {
  /** @param code The failure. @param facts What it is about. @param options `cause`. */
  constructor(code: Code, facts: SyncCodes[Code], options?: ErrorOptions) {
    super(SENTENCES, code, facts, options)
  }
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new SyncError('SYNC_ARGUMENT', facts))
