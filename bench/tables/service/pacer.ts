/**
 * The clock of a paced client, a thread of its own: says when a request is due, at that time.
 *
 * Timers of an event loop come in whole milliseconds, and late when the loop is busy; latencies that count
 * from when a request was due would be theirs. This thread sleeps in the kernel to the microsecond instead.
 */
import { parentPort } from 'node:worker_threads'

/** When requests are due: `count` of them, `gapMs` apart, the first at `startAtMs` of the Unix epoch. */
export interface Pace {
  readonly startAtMs: number
  readonly gapMs: number
  readonly count: number
}

const never = new Int32Array(new SharedArrayBuffer(4))

/** The first message says that this thread has started, the others which request is due. */
parentPort!.once('message', ({ startAtMs, gapMs, count }: Pace) => {
  for (let at = 0; at < count; at += 1) {
    const waitMs = startAtMs + at * gapMs - (performance.timeOrigin + performance.now())
    if (waitMs > 0) Atomics.wait(never, 0, 0, waitMs)
    parentPort!.postMessage(at)
  }
})
parentPort!.postMessage('started')
