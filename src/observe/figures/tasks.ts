/**
 * The tasks that run in this process, as the core's tables have them.
 * No other thread has to answer for that.
 */
import { Table, native } from '../../native/index.ts'
import { labelOfKey } from '../../transport/internal.ts'

/** A task that a worker has begun and not ended. */
export interface RunningTask {
  /** The zone's id, a slash, the worker's slot. */
  readonly worker: string
  /** `the main thread` where that runs it, otherwise the worker. */
  readonly thread: string
  readonly zone: string
  /** The name of its function. */
  readonly name: string
  /** Where that is written, as far as is known: `file:///app/tasks.ts:12`. */
  readonly source: string
  readonly ageMs: number
  /** The worker whose task called it, `the main thread`, or `another thread`. */
  readonly caller: string
  /** Whether its caller has given it up. */
  readonly isCancelled: boolean
}

/** The key of a function without a name. */
const UNNAMED = 'm["",""]'
/** Numbers of a worker before those of its tasks, and of each task. */
const HEAD = 3
const EACH = 4

/** The main thread, and the workers that have started, by the names by which they count. */
export function threadNames(): string[] {
  const names = ['main']
  for (const zone of native.zoneIds().split('\0')) {
    const numbers = new Float64Array(native.zoneRunning(zone).buffer)
    for (let at = 1; at < numbers.length;) {
      const [slot, mailbox, count] = numbers.subarray(at, at + HEAD)
      if (mailbox !== 0 && mailbox !== numbers[0]) names.push(`${zone}/${slot}`)
      at += HEAD + count * EACH
    }
  }
  return names
}

/** All of them, by zone and worker. */
export function runningTasks(): RunningTask[] {
  const threads = new Map<number, string>()
  const tasks: (() => RunningTask)[] = []
  for (const zone of native.zoneIds().split('\0')) {
    const numbers = new Float64Array(native.zoneRunning(zone).buffer)
    if (numbers.length > 0) threads.set(numbers[0], 'the main thread')
    for (let at = 1; at < numbers.length;) {
      const [slot, mailbox, count] = numbers.subarray(at, at + HEAD)
      const worker = `${zone}/${slot}`
      if (!threads.has(mailbox)) threads.set(mailbox, worker)
      const end = at + HEAD + count * EACH
      for (at += HEAD; at < end; at += EACH) {
        const [number, ageNs, caller, cancelled] = numbers.subarray(at, at + EACH)
        // A caller may be a worker of a zone that comes later.
        tasks.push(() => {
          const { name, file, line } = labelOfKey(native.interned(Table.functions, number) ?? UNNAMED)
          return {
            worker,
            thread: threads.get(mailbox) ?? worker,
            zone,
            name: name === '' ? 'an anonymous function' : name,
            source: line === undefined ? file : `${file}:${line}`,
            ageMs: ageNs / 1e6,
            caller: threads.get(caller) ?? 'another thread',
            isCancelled: cancelled === 1,
          }
        })
      }
    }
  }
  return tasks.map((task) => task())
}
