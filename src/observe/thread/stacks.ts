/**
 * The JavaScript stack of every thread at this moment, and what each worker runs.
 *
 * A thread reports its own stack: the inspector evaluates code on top of what runs there. Tasks are those
 * of the core's tables, which no thread has to answer for.
 */
import { messageOf } from '../../base/index.ts'
import type { Asked } from '../protocol.ts'
import { runningTasks } from '../figures/tasks.ts'
import { type Inspected, Threads } from './threads.ts'

/** One thread. */
export interface ThreadStack {
  /** Node's `threadId`; 0 for the main thread. */
  readonly thread: number
  readonly name: string
  /** The worker that it is: the zone's id, a slash, its slot. */
  readonly worker?: string
  /** Innermost first, as Node prints frames; empty while no JavaScript runs. */
  readonly frames: readonly string[]
  /** Its fibers that have waited, as `dumpText()` has them. */
  readonly fibers?: string
  /** Why there are no frames. */
  readonly problem?: { readonly code: string; readonly message: string }
}

const FRAMES_MAX = 100
const FIBERS_CHARS_MAX = 65_536
const SOURCE = 'corespun-stack'

/** Evaluated in the thread. The program may have frozen or changed everything that this uses. */
const PROBE = `(() => {
  const here = globalThis[Symbol.for('corespun.thread')]
  const fibers = globalThis[Symbol.for('corespun.fibers')]
  const saved = ['stackTraceLimit', 'prepareStackTrace'].map((key) => [
    key,
    Object.getOwnPropertyDescriptor(Error, key),
  ])
  const report = {}
  try {
    Error.stackTraceLimit = ${FRAMES_MAX + 2}
    Error.prepareStackTrace = undefined
    Error.captureStackTrace(report)
    report.stack += ''
  } catch (error) {
    report.problem = String(error)
  }
  for (const [key, found] of saved) {
    try {
      if (found === undefined) delete Error[key]
      else Object.defineProperty(Error, key, found)
    } catch {}
  }
  let dumped
  try {
    dumped = fibers?.().slice(0, ${FIBERS_CHARS_MAX})
  } catch {}
  const { threadId } = process.getBuiltinModule('node:worker_threads')
  const { stack, problem } = report
  return JSON.stringify({ stack, problem, thread: threadId, worker: here?.worker, fibers: dumped })
})()
//# sourceURL=${SOURCE}`

interface Report {
  readonly stack?: string
  readonly problem?: string
  readonly thread: number
  readonly worker?: string
  readonly fibers?: string
}

/** All threads, and the tasks that run. */
export async function stacks(_: Asked): Promise<unknown> {
  const threads = await Threads.open()
  try {
    const tasks = runningTasks()
    const found = await Promise.all(threads.all.map(stackOf))
    return { threads: found.sort((a, b) => a.thread - b.thread), tasks }
  } finally {
    threads.close()
  }
}

async function stackOf(inspected: Inspected): Promise<ThreadStack> {
  const { name, thread } = inspected
  try {
    const { result, exceptionDetails } = (await inspected.call('Runtime.evaluate', {
      expression: PROBE,
      returnByValue: true,
    })) as { result?: { value?: string }; exceptionDetails?: { text?: string } }
    if (result?.value === undefined) throw new Error(exceptionDetails?.text ?? 'the thread returned nothing')
    const { stack = '', problem, fibers, worker, ...report } = JSON.parse(result.value) as Report
    if (problem !== undefined) throw new Error(problem)
    const frames = stack
      .split('\n')
      .slice(1)
      .filter((line) => !line.includes(SOURCE))
    return {
      thread: report.thread,
      name,
      ...(worker === undefined ? {} : { worker }),
      frames: frames.map((line) => line.trim().replace(/^at /, '')),
      ...(fibers === undefined || fibers === '' ? {} : { fibers }),
    }
  } catch (error) {
    const { code = 'OBSERVE_FAILED' } = error as { readonly code?: string }
    return { thread, name, frames: [], problem: { code, message: messageOf(error) } }
  }
}
