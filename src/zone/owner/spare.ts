/**
 * A worker's thread that is started before its place is free.
 *
 * To start one takes tens of milliseconds, more where all cores are busy. A task that goes on after its
 * caller gave up ends with its worker after `graceMs`; what waits for that worker should not wait for a start
 * as well.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'

/** What a thread is told that is not wanted after all. */
export const NO_SLOT = -1

/** It has everything but its slot, for which it waits. */
export class Spare {
  readonly #thread: Worker
  /** A way of its own: what user code in the worker hears on `parentPort` is not meant for that code. */
  readonly #slots: MessagePort
  #gone = false

  /** @param start Starts the thread; its end of the way is to be handed over with what it is told. */
  constructor(start: (slots: MessagePort) => Worker) {
    const { port1, port2 } = new MessageChannel()
    this.#slots = port1
    const thread = start(port2)
    this.#thread = thread
    thread.unref()
    // One that cannot start is not missed here: the worker that is started in its place tells why.
    thread.on('error', () => (this.#gone = true))
    thread.once('exit', () => (this.#gone = true))
  }

  /** Give it its slot; `undefined` when it has died. */
  take(slot: number): Worker | undefined {
    if (this.#gone) return undefined
    this.#slots.postMessage(slot)
    return this.#thread
  }

  /**
   * Let it end unused, by itself: one that is ended while it loads its modules leaves their files open
   * (Node's own reads have no clean-up).
   */
  retire(): void {
    if (!this.#gone) this.#slots.postMessage(NO_SLOT)
  }
}
