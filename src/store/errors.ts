/**
 * Errors of stores.
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

/** The facts of errors of a store's file: its path, and what the system or the engine reports about it. */
export interface StoreFileFacts {
  /** The store. */
  readonly id: string
  /** The path of its file. */
  readonly file: string
  /** What the system or the engine reports, or the version of the file. */
  readonly what: string
  /** The store was being created. */
  readonly isNew?: true
}

/** The facts of each code of {@link StoreError}. */
export type StoreCodes = {
  /** `store.create` with a name that is taken. */
  STORE_EXISTS: { readonly id: string }
  /** `store.get` with a name that no store has; `known` has the first ten existing names. */
  STORE_UNKNOWN: { readonly id: string; readonly known: readonly string[] }
  /** The store is closed, by this thread or another one. */
  STORE_CLOSED: { readonly id: string }
  /** An invalid argument or option. */
  STORE_ARGUMENT: ArgumentFacts
  /** The value is longer than `valueBytesMax` or than the whole store may be. */
  STORE_VALUE_TOO_LARGE: { readonly id: string; readonly key: string; readonly bytesMax: number }
  /** The store is at its limit and its `eviction` is `'none'`. */
  STORE_FULL: { readonly id: string; readonly entriesMax: number; readonly bytesMax: number }
  /** `increment` found a value that is not a finite number, or the sum is not. */
  STORE_NOT_NUMBER: { readonly id: string; readonly key: string; readonly received: string }
  /** `getOrCompute` was called for a key by the function that computes that key. */
  STORE_COMPUTE_CYCLE: { readonly id: string; readonly key: string }
  /** The function of `update` or a transaction writes or deletes its key by another call. */
  STORE_UPDATE_CYCLE: { readonly id: string; readonly key: string; readonly isAtomic?: true }
  /** `view` found a part of the value that cannot be frozen. */
  STORE_NOT_FREEZABLE: {
    readonly id: string
    readonly key: string
    readonly path: string
    readonly what: string
  }
  /** Another process, or another store of this one, has the file open. */
  STORE_FILE_IN_USE: StoreFileFacts
  /** The folder of the file does not exist. */
  STORE_FILE_FOLDER_MISSING: StoreFileFacts
  /** The system refuses access to the file. */
  STORE_FILE_DENIED: StoreFileFacts
  /** The file is not that of a store. */
  STORE_FILE_FOREIGN: StoreFileFacts
  /** The file is damaged. */
  STORE_FILE_CORRUPT: StoreFileFacts
  /** A newer version of the package has written the file. */
  STORE_FILE_VERSION: StoreFileFacts
  /** No space is left for the file: what was written is in memory only. */
  STORE_DISK_FULL: StoreFileFacts
  /** The file was deleted or replaced while the store was open. */
  STORE_FILE_REMOVED: StoreFileFacts
  /** The system could not read or write the file for another reason. */
  STORE_FILE_FAILED: StoreFileFacts
  /** More than `unflushedBytesMax` bytes wait to be written to the file. */
  STORE_FILE_BEHIND: { readonly id: string; readonly file: string; readonly bytesMax: number }
  /** The function of a transaction calls `atomically` or `atomicallySync`. */
  STORE_ATOMIC_NESTED: { readonly call: string }
  /** A transaction is used after its function has returned. */
  STORE_ATOMIC_ENDED: { readonly call: string }
  /** A transaction reads or writes more than `keysMax` keys. */
  STORE_ATOMIC_KEYS: { readonly call: string; readonly keysMax: number }
  /** Other threads have changed what a transaction read, in `attemptsMax` attempts one after the other. */
  STORE_ATOMIC_CONTENDED: { readonly call: string; readonly attemptsMax: number }
  /** `timeoutMs` has passed, and the transaction still waits or conflicts. */
  STORE_ATOMIC_TIMEOUT: { readonly call: string; readonly timeoutMs: number }
  /** `retry` in a transaction that cannot wait, because it is synchronous or has read nothing. */
  STORE_ATOMIC_WAITS: { readonly call: string; readonly hasRead: boolean }
  /** A transaction writes to several stores that have files. */
  STORE_ATOMIC_FILES: { readonly call: string; readonly ids: readonly string[] }
  /** `share` found a part of the value that cannot be shared. */
  STORE_NOT_SHAREABLE: { readonly path: string; readonly what: string }
  /** A value to share needs more memory than `bytesMax`. */
  STORE_SHARE_TOO_LARGE: { readonly bytesMax: number }
}

/** wine 8 refuses how LMDB maps a file; Windows does not. */
const IF_WINE = process.platform === 'win32' ? '; under wine create the store without `file`' : ''

const SENTENCES: Sentences<StoreCodes> = {
  STORE_EXISTS: (f) => `a store named '${f.id}' already exists; getOrCreate() or get() returns it`,
  STORE_UNKNOWN: (f) => unknownSentence('store', f.id, f.known),
  STORE_CLOSED: (f) => `the store '${f.id}' is closed; store.create() makes a new one of that name`,
  STORE_ARGUMENT: argumentSentence,
  STORE_VALUE_TOO_LARGE: (f) =>
    `the value for ${f.key} is too large for the store '${f.id}', whose limit per value is ${f.bytesMax} ` +
    'bytes (valueBytesMax, bytesMax); raise it, or store less',
  STORE_FULL: (f) =>
    `the store '${f.id}' is full (entriesMax ${f.entriesMax}, bytesMax ${f.bytesMax}) ` +
    `and its eviction is 'none'; delete entries, or use eviction 'lru'`,
  STORE_NOT_NUMBER: (f) =>
    `store.increment(): the value of ${f.key} in '${f.id}' must be a finite number; found ${f.received}; ` +
    'set() replaces it',
  STORE_COMPUTE_CYCLE: (f) =>
    `store.getOrCompute(): the function that computes ${f.key} in '${f.id}' asks for it ` +
    'and would wait for itself; return the value instead',
  STORE_UPDATE_CYCLE: (f) =>
    f.isAtomic === true
      ? `the function of a transaction that has ${f.key} in '${f.id}' writes that key beside it; ` +
        'use tx.set(), tx.update() or tx.delete()'
      : `the function that updates ${f.key} in '${f.id}' writes that key; return the new value instead`,
  STORE_NOT_FREEZABLE: (f) =>
    `store.view(): ${f.path} of ${f.key} in '${f.id}' cannot be frozen: ${f.what}; use get()`,
  STORE_FILE_IN_USE: (f) =>
    `the file ${f.file} of the store '${f.id}' is open in another process or store; close that one, ` +
    'or use another file: one process has it at a time, and all its threads share the store',
  STORE_FILE_FOLDER_MISSING: (f) =>
    `the folder of the file ${f.file} of the store '${f.id}' does not exist; create it before the store`,
  STORE_FILE_DENIED: (f) =>
    `the file ${f.file} of the store '${f.id}' cannot be opened for reading and writing: ${f.what}; ` +
    `check the permissions of the file and its folder${IF_WINE}`,
  STORE_FILE_FOREIGN: (f) =>
    `the file ${f.file} is not that of a store (${f.what}); the store '${f.id}' needs a path that is free, ` +
    'or a file that a store has written',
  STORE_FILE_CORRUPT: (f) =>
    `the file ${f.file} of the store '${f.id}' is damaged: ${f.what}; replace it by a backup, ` +
    'or delete it to begin with an empty store',
  STORE_FILE_VERSION: (f) =>
    `the file ${f.file} of the store '${f.id}' has version ${f.what} of the format, newer than this ` +
    'one; update corespun',
  STORE_DISK_FULL: (f) =>
    `no space is left for the file ${f.file} of the store '${f.id}': what was written since the last ` +
    'flush() is in memory only; free space, then flush() again',
  STORE_FILE_REMOVED: (f) =>
    `the file ${f.file} of the store '${f.id}' was deleted or replaced while the store was open: what was ` +
    'written since is in memory only; copy the entries into a new store with that path, and close this one',
  STORE_FILE_FAILED: (f) =>
    f.isNew === true
      ? `the file ${f.file} of the store '${f.id}' cannot be opened: ${f.what}; the store was not created: ` +
        'check the length of the path and its characters, and the disk'
      : `the file ${f.file} of the store '${f.id}' cannot be read or written: ${f.what}; what was written ` +
        'since the last flush() is in memory only, and the next flush() tries again',
  STORE_FILE_BEHIND: (f) =>
    `more than ${f.bytesMax} bytes (unflushedBytesMax) of the store '${f.id}' wait to be written to ` +
    `${f.file}; await flush() between writes`,
  STORE_ATOMIC_NESTED: (f) =>
    `${f.call} was called by the function of a transaction, whose changes it would not see; ` +
    'pass `tx` to what takes part in it',
  STORE_ATOMIC_ENDED: (f) =>
    `the transaction of ${f.call} was used after its function had returned; use it only before that, ` +
    'without waiting in between',
  STORE_ATOMIC_KEYS: (f) =>
    `the transaction of ${f.call} reads or writes more than ${f.keysMax} keys (keysMax); raise it, or ` +
    'change fewer at a time',
  STORE_ATOMIC_CONTENDED: (f) =>
    `other threads have changed what the transaction of ${f.call} read, ${f.attemptsMax} times one after ` +
    'the other (attemptsMax); read fewer keys, do less in the function, or use a Lock',
  STORE_ATOMIC_TIMEOUT: (f) =>
    `timed out after ${f.timeoutMs} ms (timeoutMs) in ${f.call}; raise timeoutMs, or change ` +
    'what it waits for',
  STORE_ATOMIC_WAITS: (f) =>
    f.hasRead
      ? `retry() in ${f.call}, which cannot wait; use \`await atomically()\`, or orElse() with another way`
      : `retry() in ${f.call} before anything was read, which would wait forever; read what it ` +
        'depends on first',
  STORE_ATOMIC_FILES: (f) =>
    `the transaction of ${f.call} writes to stores with different files (${f.ids.join(', ')}), of which a ` +
    'crash could leave one written and another not; keep these keys in one store, with a prefix each',
  STORE_NOT_SHAREABLE: (f) =>
    `store.share(): ${f.path} cannot be shared: ${f.what}; share plain records, lists, typed arrays, ` +
    'strings, numbers, booleans, bigints and dates',
  STORE_SHARE_TOO_LARGE: (f) =>
    `store.share(): the value needs more than ${f.bytesMax} bytes (bytesMax); raise it, or share less`,
}

/**
 * An error of a store.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { store, StoreError } from 'corespun/store'
 *
 * try {
 *   store.get('missing')
 * } catch (error) {
 *   assert.ok(error instanceof StoreError && error.code === 'STORE_UNKNOWN')
 * }
 * ```
 */
export class StoreError<Code extends keyof StoreCodes = keyof StoreCodes> extends CorespunError<
  StoreCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

export const wrong = refuser((facts) => new StoreError('STORE_ARGUMENT', facts))
