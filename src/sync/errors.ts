/**
 * Errors of locks, semaphores, channels and counters.
 *
 * Programs compare `code` and read `facts`; the message is made from them.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
  unknownSentence,
} from '../base/index.ts'

/** What an error is about. */
export interface SyncFacts {
  /** `'lock'`, `'rwLock'`, `'semaphore'`, `'channel'` or `'counter'`. */
  readonly kind: string
  /** Its name; `''` if it is anonymous. */
  readonly name: string
}

/** The facts of each code of {@link SyncError}. */
export type SyncCodes = {
  /** The wait took longer than `timeoutMs`. */
  SYNC_TIMEOUT: SyncFacts & { readonly timeoutMs: number }
  /** A blocking call in the main thread without `{ allowBlocking: true }`. */
  SYNC_BLOCKING: SyncFacts
  /** The caller would wait for itself: its own code or thread holds the object or is queued for it. */
  SYNC_DEADLOCK: SyncFacts
  /** A synchronous guard received a function that returned a promise; the guard ended before it settled. */
  SYNC_ASYNC_BODY: SyncFacts
  /** The channel is closed. */
  SYNC_CLOSED: SyncFacts
  /** `create` with a name that is taken. */
  SYNC_EXISTS: SyncFacts
  /**
   * `get` with a name that does not exist; `known` has the first ten existing names of that kind. Without
   * `known`: a handle arrived after its object was disposed of.
   */
  SYNC_UNKNOWN: SyncFacts & { readonly known?: readonly string[] }
  /** The sum would exceed the safe integers; the counter has not changed. */
  SYNC_COUNTER_RANGE: SyncFacts
  /** An invalid argument or option. */
  SYNC_ARGUMENT: ArgumentFacts
}

const SENTENCES: Sentences<SyncCodes> = {
  SYNC_TIMEOUT: (f) =>
    `timed out after ${f.timeoutMs} ms (timeoutMs) while waiting for ${called(f)}; ` +
    (f.kind === 'channel'
      ? 'raise timeoutMs, or let its other side keep up'
      : 'raise timeoutMs, or hold it for a shorter time'),
  SYNC_BLOCKING: (f) =>
    `${called(f)}: a synchronous call would block the main thread; ` +
    'use the asynchronous one, or pass { allowBlocking: true }',
  SYNC_DEADLOCK: (f) =>
    `${called(f)} is already held or waited for by the caller, which would wait for itself forever; ` +
    'end that guard first (a lock is not reentrant, and a read lock does not become a write lock)',
  SYNC_ASYNC_BODY: (f) =>
    `${called(f)}: the function of a synchronous guard returned a promise, and the guard has ended; ` +
    'use guard()',
  SYNC_CLOSED: (f) => `${called(f)} is closed; \`for await\` of a channel ends there without an error`,
  SYNC_EXISTS: (f) => `${called(f)} already exists; getOrCreate() or get() returns it`,
  SYNC_UNKNOWN: (f) =>
    f.known === undefined
      ? `${called(f)} was disposed of before this handle arrived; dispose of it after its last use`
      : unknownSentence(NOUN.get(f.kind) ?? f.kind, String(f.name), f.known),
  SYNC_COUNTER_RANGE: (f) =>
    `${called(f)} would exceed the safe integers; it has not changed; set() starts again`,
  SYNC_ARGUMENT: argumentSentence,
}

const NOUN = new Map([
  ['rwLock', 'read-write lock'],
  ['counter', 'atomic counter'],
])

function called({ kind, name }: SyncFacts): string {
  const noun = NOUN.get(kind) ?? kind
  return name === '' ? `the anonymous ${noun}` : `the ${noun} '${name}'`
}

/**
 * An error of a lock, semaphore, channel or counter.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Lock, SyncError } from 'corespun/sync'
 *
 * try {
 *   Lock.get('missing')
 * } catch (error) {
 *   assert.ok(error instanceof SyncError && error.code === 'SYNC_UNKNOWN')
 * }
 * ```
 */
export class SyncError<Code extends keyof SyncCodes = keyof SyncCodes> extends CorespunError<
  SyncCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

export const wrong = refuser((facts) => new SyncError('SYNC_ARGUMENT', facts))
