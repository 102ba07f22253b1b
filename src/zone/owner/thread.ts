/**
 * The thread of a worker: its start data, the options that Node receives, and its last error.
 *
 * Apart from the owner because none of this depends on what the owner keeps.
 */
import module from 'node:module'
import { dirname } from 'node:path'
import { types } from 'node:util'
import type { MessagePort, Worker } from 'node:worker_threads'
import { threads } from '../../base/index.ts'
import { MAIN_MODULE } from '../../transport/internal.ts'
import type { ZoneSettings } from '../api/settings.ts'
import { stringOf } from '../call/portable.ts'

/** The start data of a worker. */
export interface WorkerStart {
  readonly zoneNumber: number
  /** Absent in a spare worker, which receives it later as the one message on `slots`. */
  readonly slot?: number
  readonly slots?: MessagePort
  readonly zoneId: string
  readonly settings: ZoneSettings
}

export function startThread(data: WorkerStart, name: string): Worker {
  const { settings } = data
  const cacheFolder = compileCache()
  const main =
    cacheFolder === undefined
      ? new URL('../worker/worker.js', import.meta.url)
      : new URL('../worker/cached.js', import.meta.url)
  const { Worker, isMainThread, setEnvironmentData } = threads()
  // In a worker, argv has the worker's own file.
  if (isMainThread) setEnvironmentData(MAIN_MODULE, process.argv[1] ?? '')
  return new Worker(main, {
    name,
    workerData: { corespun: { ...data, cacheFolder } },
    transferList: data.slots === undefined ? [] : [data.slots],
    ...execArgvOf(settings),
    ...(settings.env === null ? {} : { env: { ...settings.env } }),
    ...(settings.heapMbMax === null
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: settings.heapMbMax } }),
  })
}

/** The folder given to this thread's `enableCompileCache`; `undefined` without a cache, and on Node 20. */
function compileCache(): string | undefined {
  const { getCompileCacheDir }: Partial<typeof module> = module
  // What Node returns is a folder for this Node in it.
  const folder = getCompileCacheDir?.()
  return folder === undefined ? undefined : dirname(folder)
}

/** Node options about module loading and warnings, and those of them that take a value. */
const INHERITED = new RegExp(
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
  const given = process.execArgv
  if (!given.some((option) => option.startsWith('--input-type'))) return {}
  const ofPrevious = (index: number): boolean => WITH_VALUE.test(given[index - 1] ?? '')
  return { execArgv: given.filter((option, index) => INHERITED.test(option) || ofPrevious(index)) }
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

/** Why a worker ended, as `WORKER_DIED` shows it. */
export function deathReason(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return 'its heap was exhausted (heapMbMax limits it)'
  return `an error was not caught: ${stringOf(error instanceof Error ? error.message : error)}`
}
