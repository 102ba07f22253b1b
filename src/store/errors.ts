/**
 * What stores refuse.
 *
 * Decide by `code`, read `facts`; the sentence is for people.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The facts of each code. */
export type StoreCodes = {
  /** `store.create` with a name that is taken. */
  STORE_EXISTS: { readonly id: string }
  /** `store.get` with a name that no store has. */
  STORE_UNKNOWN: { readonly id: string; readonly known: readonly string[] }
  /** The store was closed, here or by another thread. */
  STORE_CLOSED: { readonly id: string }
  /** A setting is not what it must be. */
  STORE_SETTING: ArgumentFacts
  /** An argument is not what it must be. */
  STORE_ARGUMENT: ArgumentFacts
  /** The value is longer than `valueBytesMax`, or larger than the whole store may be. */
  STORE_VALUE_TOO_LARGE: { readonly id: string; readonly key: string; readonly bytesMax: number }
  /** The store holds all it may and its `eviction` is `'none'`. */
  STORE_FULL: { readonly id: string; readonly entriesMax: number; readonly bytesMax: number }
  /** `increment` met something else than a number. */
  STORE_NOT_NUMBER: { readonly id: string; readonly key: string; readonly received: string }
  /** `getOrCompute` was called for a key by what computes that key: it would wait for itself. */
  STORE_COMPUTE_CYCLE: { readonly id: string; readonly key: string }
  /** The function that makes a key's new value for `update` and its kin writes or deletes that key itself. */
  STORE_UPDATE_CYCLE: { readonly id: string; readonly key: string }
  /** `view` met a part that cannot be frozen. */
  STORE_NOT_FREEZABLE: { readonly id: string; readonly path: string; readonly what: string }
}

const SENTENCES: Sentences<StoreCodes> = {
  STORE_EXISTS: (f) => `a store named '${f.id}' exists already; getOrCreate() takes it`,
  STORE_UNKNOWN: (f) =>
    `no store is named '${f.id}'; ` +
    (f.known.length === 0 ? 'there are none' : `there are ${f.known.map((id) => `'${id}'`).join(', ')}`),
  STORE_CLOSED: (f) => `the store '${f.id}' is closed`,
  STORE_SETTING: argumentSentence,
  STORE_ARGUMENT: argumentSentence,
  STORE_VALUE_TOO_LARGE: (f) =>
    `the value for ${f.key} is too large for the store '${f.id}': a value may have ${f.bytesMax} bytes, ` +
    'and not more than the store itself',
  STORE_FULL: (f) =>
    `the store '${f.id}' is full (entriesMax ${f.entriesMax}, bytesMax ${f.bytesMax}) and evicts nothing`,
  STORE_NOT_NUMBER: (f) => `increment: '${f.id}' has ${f.received} for ${f.key}, not a number`,
  STORE_COMPUTE_CYCLE: (f) => `what computes ${f.key} in '${f.id}' asks for it: it would wait for itself`,
  STORE_UPDATE_CYCLE: (f) =>
    `what makes the new value of ${f.key} in '${f.id}' writes that key: return the new value instead`,
  STORE_NOT_FREEZABLE: (f) => `view: ${f.path} in '${f.id}' cannot be frozen: ${f.what}; use get()`,
}

/** A store refused. */
export class StoreError<Code extends keyof StoreCodes = keyof StoreCodes> extends CorespunError<
  StoreCodes,
  Code
> {
  /** @param code The failure. @param facts What it is about. @param options `cause`. */
  constructor(code: Code, facts: StoreCodes[Code], options?: ErrorOptions) {
    super(SENTENCES, code, facts, options)
  }
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new StoreError('STORE_ARGUMENT', facts))
