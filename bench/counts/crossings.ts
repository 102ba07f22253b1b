/**
 * Loaded before everything else in each thread of a counted program: each function of the native core counts
 * its calls, over all threads.
 */
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'
import { IS_TRACED, mark, untilAsleep } from './marks.ts'

/** For functions that are sent to workers, which import nothing. */
export interface TraceMarks {
  whenAsleep(thread: number): void
}

const KEY = 'corespun-crossings'
const FUNCTIONS_MAX = 512

if (isMainThread) setEnvironmentData(KEY, new Int32Array(new SharedArrayBuffer(4 * FUNCTIONS_MAX)))
const counts = getEnvironmentData(KEY) as unknown as Int32Array
let names: readonly string[] = []

Object.assign(globalThis, {
  whenAsleep(thread) {
    if (!IS_TRACED) return
    mark('off')
    untilAsleep(thread)
    mark('on')
  },
} satisfies TraceMarks)

const load = process.dlopen
process.dlopen = (module: object, ...rest: unknown[]): void => {
  Reflect.apply(load, process, [module, ...rest])
  const { exports } = module as { exports: Record<string, unknown> }
  names = Object.keys(exports)
  for (const [at, name] of names.entries()) {
    const call = exports[name]
    if (typeof call !== 'function') continue
    exports[name] = (...args: unknown[]): unknown => {
      Atomics.add(counts, at, 1)
      return Reflect.apply(call, exports, args)
    }
  }
}

/** Calls since the process began, by the name of the function. */
export function crossings(): Map<string, number> {
  return new Map(names.map((name, at) => [name, Atomics.load(counts, at)]))
}
