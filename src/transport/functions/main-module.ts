/**
 * The main module of the program, as a module that workers import.
 *
 * A worker that imports it runs the program again from its beginning. That often fails, and the error
 * contains RAN_MAIN_AGAIN; where it does not fail, the program runs once more in each worker: a warning.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { threads } from '../../base/index.ts'

/** Environment data of workers: the path of the program that the main thread runs. */
export const MAIN_MODULE = 'corespun.main'

/** The advice where a worker has imported the program that started it. */
export const RAN_MAIN_AGAIN =
  '; it is the main module of this program, which the worker has run again from its beginning: ' +
  'move the function to a module of its own'

/** Whether `module` is the program that this process runs, and this thread is a worker. */
export function isMainModule(module: string): boolean {
  const { isMainThread, getEnvironmentData } = threads()
  return !isMainThread && isProgram(module, getEnvironmentData(MAIN_MODULE))
}

function isProgram(module: string, main: unknown): boolean {
  if (typeof main !== 'string' || !module.startsWith('file:')) return false
  try {
    return realpathSync(main) === realpathSync(fileURLToPath(module))
  } catch {
    return false // One of them is not a file.
  }
}

/** The names by which a program recognises that it runs in a worker. */
const GUARD = /\b(isMainThread|workerData|threadId)\b|\bzone\.current\b/

let hasWarned = false

/** Warn, once, when the main thread names its own program to a zone, unless its source has a guard. */
export function warnOfMainModule(module: string): void {
  if (hasWarned || !threads().isMainThread || !isProgram(module, process.argv[1])) return
  hasWarned = true
  if (GUARD.test(readFileSync(fileURLToPath(module), 'utf8'))) return
  process.emitWarning(
    `${module} is the main module of this program, and each worker that calls a function of it runs the ` +
      'program again from its beginning; move the function to a module of its own, or begin the program ' +
      'with a test of isMainThread',
    { type: 'CorespunWarning', code: 'CORESPUN_MAIN_MODULE' },
  )
}
