/**
 * A worker thread that is started before its slot is free.
 *
 * A start takes tens of milliseconds, more where all cores are busy. A cancelled task that runs on ends with
 * its worker after `graceMs`; the tasks that wait for that worker should not wait for a start as well.
 */
import type { MessagePort, Worker } from 'node:worker_threads'
import { threads } from '../../base/index.ts'

/** Sent to a spare worker that is not needed. */
export const NO_SLOT = -1

export class SpareWorker {
  readonly #thread: Worker
  /** A separate channel, so that user listeners on `parentPort` do not see internal messages. */
  readonly #slots: MessagePort
  #hasEnded = false

  /** @param start Starts the thread, with its end of the channel in its start data. */
  constructor(start: (slots: MessagePort) => Worker) {
    const { MessageChannel } = threads()
    const { port1, port2 } = new MessageChannel()
    this.#slots = port1
    const thread = start(port2)
    this.#thread = thread
    thread.unref()
    // The worker that is started instead reports why a start fails.
    thread.on('error', () => (this.#hasEnded = true))
    thread.once('exit', () => (this.#hasEnded = true))
  }

  /** Assign the slot and return the thread; `undefined` when the thread has ended. */
  take(slot: number): Worker | undefined {
    if (this.#hasEnded) return undefined
    this.#slots.postMessage(slot)
    return this.#thread
  }

  /**
   * Let the thread end by itself. One that is terminated while it loads its modules leaves their files open,
   * since Node's own reads have no clean-up.
   */
  retire(): void {
    if (!this.#hasEnded) this.#slots.postMessage(NO_SLOT)
  }
}
