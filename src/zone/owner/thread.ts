/**
 * The thread of a worker: its start data, the options that Node receives, and its last error.
 *
 * Apart from the owner because none of this depends on what the owner keeps.
 */
import { types } from 'node:util'
import type { MessagePort, Worker } from 'node:worker_threads'
import { threads } from '../../base/index.ts'
import { MAIN_MODULE } from '../../transport/internal.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import { stringOf } from '../call/portable.ts'
import { mainFile } from './main-file.ts'

export interface WorkerStart {
  readonly zoneNumber: number
  readonly slot: number
  readonly zoneId: string
  readonly settings: ZoneSettings
  /** Environment data that this thread has set since it started the worker. */
  readonly environment?: readonly (readonly [key: string, value: unknown])[]
}

/** The start data of a spare worker: where it receives the rest. */
export interface SpareStart {
  readonly slots: MessagePort
  /** The start of a worker that runs `setup` before it receives its slot. */
  readonly prepares?: WorkerStart | undefined
}

export interface ProcessStart {
  readonly corespun: { readonly now?: WorkerStart | undefined; readonly prepares?: WorkerStart | undefined }
}

/** A message to a process that has started without a slot. */
export interface ProcessSlot {
  readonly corespunSlot: WorkerStart | null
}

/** The process is looked into, see corespun/observe: it imports `module` and calls its `begin` with this. */
export interface ProcessObserved {
  readonly module: string
  readonly name: string
  readonly parent: number
}

/** To a process: count, by that module. */
export interface ProcessCount {
  readonly corespunCount: string
}

/** To a process that counts: a question to it. */
export interface ProcessAsked {
  readonly corespunAsked: unknown
}

/** From a process: what it has counted so far, or a reply. */
export interface ProcessCounts {
  readonly corespunFigures: unknown
}

/** The error that ended a process, as a frame. */
export interface ProcessError {
  readonly corespunThrown: Uint8Array
}

export interface WorkerThread {
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  once(event: 'exit', listener: (code: number | null, signal?: string | null) => void): unknown
  off(event: 'message', listener: (message: unknown) => void): unknown
  terminate(): unknown
  unref(): void
}

/** Start a thread with the options that `settings` has for it. */
export function startThread(data: WorkerStart | SpareStart, name: string, settings: ZoneSettings): Worker {
  const { file, cacheFolder } = mainFile()
  const { Worker, isMainThread, setEnvironmentData } = threads()
  // In a worker, argv has the worker's own file.
  if (isMainThread) setEnvironmentData(MAIN_MODULE, process.argv[1] ?? '')
  return new Worker(file, {
    name,
    workerData: { corespun: { ...data, cacheFolder } },
    transferList: 'slots' in data ? [data.slots] : [],
    ...execArgvOf(settings),
    ...(settings.env === null ? {} : { env: { ...settings.env } }),
    ...(settings.heapMbMax === null
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: settings.heapMbMax } }),
  })
}

/** Node options about module loading and warnings, and those of them that take a value. */
export const INHERITED = new RegExp(
  '^(--import|--require|-r|--(no-)?experimental-|--conditions|-C|--no-|--trace-|' +
    '--disable-warning|--enable-source)',
)
const WITH_VALUE = /^(--import|--require|-r|--experimental-loader|--conditions|-C|--disable-warning)$/

/**
 * Workers inherit Node's options, but under --input-type Node refuses to start a worker from a file. There
 * the list is explicit and contains the options about modules alone, since a worker may not have all options
 * of a process.
 */
function execArgvOf(settings: ZoneSettings): { execArgv?: string[] } {
  if (settings.execArgv !== null) return { execArgv: [...settings.execArgv] }
  return process.execArgv.some((option) => option.startsWith('--input-type'))
    ? { execArgv: inheritedOptions(INHERITED) }
    : {}
}

export function inheritedOptions(inherited: RegExp): string[] {
  const given = process.execArgv
  const ofPrevious = (index: number): boolean => WITH_VALUE.test(given[index - 1] ?? '')
  return given.filter((option, index) => inherited.test(option) || ofPrevious(index))
}

/** A worker's error as a real one: Node passes an object that only has its prototype. */
export function revivedError(given: unknown): unknown {
  if (types.isNativeError(given) || !(given instanceof Error)) return given
  const error: Error = given
  const { message, stack, cause, ...own } = error
  const real = Object.setPrototypeOf(
    new Error(stringOf(message)),
    Object.getPrototypeOf(error) as object,
  ) as Error
  const hidden = 'cause' in error ? { stack, cause: revivedError(cause) } : { stack }
  for (const [key, value] of Object.entries(hidden)) {
    Object.defineProperty(real, key, { value, configurable: true, writable: true })
  }
  return Object.assign(real, own)
}

/** Why a worker ended that no error has ended. */
export function exitReason(code: number | null, signal: string | null | undefined): string {
  return signal === null || signal === undefined ? `it exited with code ${code}` : `it was ended by ${signal}`
}

/** Why a worker ended by an error, as `WORKER_DIED` shows it. */
export function deathReason(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return 'its heap was exhausted (heapMbMax limits it)'
  return `an error was not caught: ${stringOf(error instanceof Error ? error.message : error)}`
}
