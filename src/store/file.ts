/**
 * The file of a store: waiting until it is open, durable or closed, and its errors.
 *
 * A thread of the core does the work. No native call waits longer than 10 ms, so that a worker which opens a
 * large file can be terminated.
 */
import { shown } from '../base/index.ts'
import { Fact, Flush, Scratch, Stage, thisWaits } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { StoreError } from './errors.ts'
import type { StoreSettings } from './options.ts'

/** A store with a file, as this thread has it. */
export interface Filed {
  readonly id: string
  readonly handle: number
  readonly settings: StoreSettings
}

/**
 * Waits until all entries are loaded; returns false when the store was closed meanwhile.
 * @throws {StoreError} when the file cannot be opened.
 */
export function opensFile(store: Filed): boolean {
  let stage: number
  do stage = native.storeFileStage(store.handle)
  while (stage === Stage.opening)
  const error = stage === Stage.ended ? problemOf(store, true) : undefined
  if (error !== undefined) throw error
  return stage === Stage.open
}

/**
 * Resolves when the file contains all changes up to now.
 * @throws {StoreError} when it cannot be written.
 */
export async function flushFile(store: Filed): Promise<void> {
  const ticket = thisWaits().ticket()
  const result = native.storeFlush(store.handle, ticket)
  if (result === Flush.done) return
  const isDurable = result === Flush.waits && (await thisWaits().once(ticket)) === Fact.durable
  if (!isDurable) throw problemOf(store) ?? new StoreError('STORE_CLOSED', { id: store.id })
}

/**
 * Waits until the file of a closed store contains what it lacked, and is closed.
 * @throws {StoreError} when it cannot be written.
 */
export function closesFile(store: Filed): void {
  while (native.storeFileStage(store.handle) === Stage.closing);
  const error = problemOf(store)
  if (error !== undefined) throw error
}

type FileCode =
  | 'STORE_FILE_IN_USE'
  | 'STORE_FILE_FOLDER_MISSING'
  | 'STORE_FILE_DENIED'
  | 'STORE_FILE_FOREIGN'
  | 'STORE_FILE_CORRUPT'
  | 'STORE_FILE_VERSION'
  | 'STORE_DISK_FULL'
  | 'STORE_FILE_REMOVED'
  | 'STORE_FILE_FAILED'

/** By the names that the core has for them. */
const CODES: Readonly<Record<string, FileCode>> = {
  inUse: 'STORE_FILE_IN_USE',
  missing: 'STORE_FILE_FOLDER_MISSING',
  denied: 'STORE_FILE_DENIED',
  foreign: 'STORE_FILE_FOREIGN',
  corrupt: 'STORE_FILE_CORRUPT',
  version: 'STORE_FILE_VERSION',
  full: 'STORE_DISK_FULL',
  removed: 'STORE_FILE_REMOVED',
  failed: 'STORE_FILE_FAILED',
}

function problemOf({ id, handle, settings }: Filed, isNew = false): StoreError | undefined {
  const problem = native.storeFileProblem(handle)
  if (problem === undefined) return undefined
  const at = problem.indexOf('\n')
  const [kind, what] = [problem.slice(0, at), problem.slice(at + 1)]
  const { entriesMax, bytesMax, valueBytesMax } = settings
  if (kind === 'tooMany') return new StoreError('STORE_FULL', { id, entriesMax, bytesMax })
  if (kind === 'tooLarge') {
    const bytes = Buffer.from(what, 'hex')
    const key = shown(Scratch.keyOf(bytes, 0, bytes.length))
    return new StoreError('STORE_VALUE_TOO_LARGE', { id, key, bytesMax: valueBytesMax })
  }
  const facts = { id, file: settings.file as string, what }
  return new StoreError(CODES[kind], isNew ? { ...facts, isNew } : facts)
}
