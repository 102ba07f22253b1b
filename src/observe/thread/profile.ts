/**
 * Where the threads spend their CPU time, or what they allocate, for some seconds.
 *
 * V8's profilers run in each thread, started and stopped by the inspector, also in an endless loop and in
 * threads that start meanwhile. A thread that answers notes its labels as well (labels.ts); one that does not
 * runs its task, which the core's tables have, for the whole time.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { integer, messageOf, oneOf, optionsOf, refuser } from '../../base/index.ts'
import { ObserveError } from '../errors.ts'
import type { LabelTimes } from '../labels.ts'
import type { Asked } from '../protocol.ts'
import { type RunningTask, runningTasks } from '../figures/tasks.ts'
import { type Inspected, Threads } from './threads.ts'

/** A node of a `.cpuprofile`, with the children of its nodes by id. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: CallFrame
    readonly children?: readonly number[]
  }[]
  /** In µs. */
  readonly startTime: number
  readonly endTime: number
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

export interface CallFrame {
  readonly functionName: string
  readonly scriptId: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

/** A node of a `.heapprofile`. */
export interface HeapNode {
  readonly callFrame: CallFrame
  readonly selfSize: number
  readonly id: number
  readonly children: readonly HeapNode[]
}

/** What one thread did. */
export interface ThreadProfile {
  readonly thread: number
  readonly name: string
  readonly cpu?: CpuProfile
  readonly heap?: { readonly head: HeapNode }
  /** Where the thread had labels. */
  readonly labels?: LabelTimes
  /** The label at the beginning; '' for none. */
  readonly first: string
  readonly problem?: string
}

const wrong = refuser((facts) => new ObserveError('OBSERVE_ARGUMENT', facts))
const SECONDS_MAX = 600
const INTERVAL_US = 1000
const HEAP_BYTES = 32_768
/** A busy machine may take a second for what takes a millisecond; native code is waited for as long. */
const BEGIN_MS = 10_000
/** A profile of minutes takes a while to be written and sent. */
const STOP_MS = 30_000
/** A thread that does not answer for so long is in an endless loop, or in a task as long as that. */
const LABELS_MS = 1000
const LABELS = new URL('../labels.js', import.meta.url).href

let isRunning = false

/** @returns Of each thread a {@link ThreadProfile}; an event reports that all of them have begun. */
export async function profile({ params, stop, event }: Asked): Promise<unknown> {
  const kinds = { seconds: integer(1, SECONDS_MAX, 10), kind: oneOf(['cpu', 'heap'], 'cpu') }
  const { seconds, kind } = optionsOf(params, kinds, wrong, 'profile')
  if (isRunning) throw new ObserveError('OBSERVE_BUSY', { limit: 'one profile' })
  isRunning = true
  try {
    const threads = await Threads.open()
    try {
      const make = kind === 'cpu' ? cpuOf : heapOf
      const tasks = runningTasks()
      const begin = (thread: Inspected) => profiled(thread, tasks, make)
      const late: ReturnType<typeof begin>[] = []
      threads.onStarted = (thread) => void late.push(begin(thread))
      const begun = await Promise.all(threads.all.map(begin))
      event({ threads: begun.length })
      await pause(seconds * 1000, undefined, { signal: stop }).catch(() => {}) // answered early
      const all = [...begun, ...(await Promise.all(late))]
      return { threads: await Promise.all(all.map((end) => end())) }
    } finally {
      threads.close()
    }
  } finally {
    isRunning = false
  }
}

type Profiled = Pick<ThreadProfile, 'cpu' | 'heap' | 'labels'>

/** Begin with a thread. Resolves to what ends it. */
async function profiled(
  thread: Inspected,
  tasks: readonly RunningTask[],
  make: (thread: Inspected) => Promise<() => Promise<Profiled>>,
): Promise<() => Promise<ThreadProfile>> {
  const task = tasks.find((task) => task.thread === thread.name)
  const known = { name: thread.name, first: task === undefined ? '' : `${task.zone} ${task.name}` }
  const failed = (error: unknown): ThreadProfile => ({
    ...known,
    thread: thread.thread,
    problem: messageOf(error),
  })
  try {
    const end = await make(thread)
    return async () => {
      try {
        return { ...known, thread: thread.thread, ...(await end()) }
      } catch (error) {
        return failed(error)
      }
    }
  } catch (error) {
    return async () => failed(error)
  }
}

async function cpuOf(thread: Inspected): Promise<() => Promise<Profiled>> {
  // First, so that all samples have labels; a thread that does not answer begins when it has time for it.
  await labelled(thread, 'begin')
  await thread.call('Profiler.enable', {}, BEGIN_MS)
  await thread.call('Profiler.setSamplingInterval', { interval: INTERVAL_US }, BEGIN_MS)
  await thread.call('Profiler.start', {}, BEGIN_MS)
  return async () => {
    const { profile } = await thread.call('Profiler.stop', {}, STOP_MS)
    const labels = await labelled(thread, 'end')
    await thread.call('Profiler.disable', {}, BEGIN_MS)
    const cpu = profile as CpuProfile
    return labels === undefined ? { cpu } : { cpu, labels: JSON.parse(labels) as LabelTimes }
  }
}

async function heapOf(thread: Inspected): Promise<() => Promise<Profiled>> {
  await thread.call('HeapProfiler.startSampling', { samplingInterval: HEAP_BYTES }, BEGIN_MS)
  return async () => {
    const { profile } = await thread.call('HeapProfiler.stopSampling', {}, STOP_MS)
    return { heap: profile as { head: HeapNode } }
  }
}

/** Call a function of labels.ts in the thread; `undefined` where that is busy, or has loaded no zones. */
async function labelled(thread: Inspected, name: 'begin' | 'end'): Promise<string | undefined> {
  const load = `globalThis[Symbol.for('corespun.thread')].load(${JSON.stringify(LABELS)})`
  const expression = `${load}.then((labels) => labels.${name}() ?? '')`
  try {
    const params = { expression, awaitPromise: true, returnByValue: true }
    const answer = await thread.call('Runtime.evaluate', params, LABELS_MS)
    return (answer['result'] as { readonly value?: string }).value
  } catch {
    return undefined // it answers later, and its labels are not asked for
  }
}
