/**
 * A worker thread that is started before its slot is free, or known.
 *
 * A start takes tens of milliseconds, more where all cores are busy. A cancelled task that runs on ends with
 * its worker after `graceMs`; the tasks that wait for that worker should not wait for a start as well.
 */
import type { MessagePort } from 'node:worker_threads'
import type { WorkerStart, WorkerThread } from './thread.ts'

/** What a spare worker receives on its channel: its start data, or `null` when it is not needed. */
export type SpareMessage = WorkerStart | null

export class SpareWorker {
  readonly thread: WorkerThread
  /** A separate channel, so that user listeners on `parentPort` do not see internal messages. */
  readonly #slots: MessagePort
  #hasEnded = false

  /** @param start Starts the thread, with its end of the channel in its start data. */
  constructor(start: (slots: MessagePort) => WorkerThread) {
    const { port1, port2 } = new MessageChannel()
    this.#slots = port1
    const thread = start(port2)
    this.thread = thread
    thread.unref()
    // The worker that is started instead reports why a start fails.
    thread.on('error', () => (this.#hasEnded = true))
    thread.once('exit', () => (this.#hasEnded = true))
  }

  /** Assign the slot and return the thread; `undefined` when the thread has ended. */
  take(start: WorkerStart): WorkerThread | undefined {
    if (this.#hasEnded) return undefined
    this.#slots.postMessage(start satisfies SpareMessage)
    return this.thread
  }

  /**
   * Let the thread end by itself. One that is terminated while it loads its modules leaves their files open,
   * since Node's own reads have no clean-up.
   */
  retire(): void {
    if (!this.#hasEnded) this.#slots.postMessage(null satisfies SpareMessage)
  }
}

/** Threads that a zone has started for workers to come. */
interface Spares {
  spare: SpareWorker | undefined
  readonly prepared: Map<number, { retire(): void }>
}

/** Workers that are to come do not need them any more. */
export function dropSpares(zone: Spares): void {
  zone.spare?.retire()
  zone.spare = undefined
  for (const prepared of zone.prepared.values()) prepared.retire()
  zone.prepared.clear()
}
