/**
 * Sees which workers of a server do not return to their event loops, and has others do their work.
 *
 * The kernel gives each worker's socket its share of all new connections, whatever that worker does. So one
 * that does not turn for a second is sent away: another accepts from its socket until it turns again. One
 * that does not turn for `handlerMsMax` is ended, and the zone replaces it. The workers show by themselves
 * when they turn, and have no timer for it: one that has nothing to do is not stalled. The core on node:http
 * shows nothing; its workers are not watched.
 */
import { channel } from 'node:diagnostics_channel'
import { native } from '../../native/index.ts'
import { endWorker } from '../../zone/internal.ts'
import { type Board, rowOf } from './board.ts'

/** How often the workers are looked at. */
export const LOOK_MS = 1000
/** Without a turn for so long, a worker is sent away. */
const STALL_MS = 1000

/** For so long one that replaces another may take to serve. */
const LAST_MS = 30_000

/** What each message on the channel `corespun:http:stall` is. */
export interface StallMessage {
  /** Where the server listens. */
  readonly url: string
  readonly worker: string
  /** For how long it has not returned to its event loop. */
  readonly stalledMs: number
  /** Whether it is ended and replaced; else others accept in its place. */
  readonly isReplaced: boolean
}

const stalls = channel('corespun:http:stall')

export class Supervisor {
  /** Times that a worker was found stalled. */
  stalls = 0
  /** Of these, times that it was ended and replaced. */
  replacements = 0
  /** Workers that were ended while the server stopped. */
  cut = 0
  #isStopping = false
  readonly #board: Board
  readonly #url: string
  readonly #handlerMsMax: number
  readonly #shares: boolean
  /** Members that are stalled, and whether they were ended. */
  readonly #stalled = new Map<number, boolean>()
  #lookedMs = performance.now()

  constructor(given: {
    readonly board: Board
    readonly url: string
    readonly handlerMsMax: number
    /** Whether there are more workers than one. */
    readonly shares: boolean
  }) {
    this.#board = given.board
    this.#url = given.url
    this.#handlerMsMax = given.handlerMsMax
    this.#shares = given.shares
  }

  /** Look at these workers; to be called every `LOOK_MS`. */
  look(workers: readonly string[]): void {
    const before = this.#lookedMs
    this.#lookedMs = performance.now()
    // This thread was held up itself, perhaps with all others: they have their turn first.
    if (this.#lookedMs - before > 2 * LOOK_MS) return
    for (const worker of workers) {
      const member = this.#board.member(rowOf(worker))
      if (member !== 0) this.#judge(worker, member)
    }
  }

  /** The server stops: whoever is stalled accepts nothing any more, and nobody waits in its queue. */
  stop(workers: readonly string[], isAll = false): void {
    this.#isStopping = true
    for (const worker of workers) {
      const member = this.#board.member(rowOf(worker))
      if (member !== 0 && (isAll || this.#stalled.has(member))) native.httpSendAway(member, 1)
    }
  }

  #judge(worker: string, member: number): void {
    const stalledMs = native.httpStalledMs(member)
    if (stalledMs < STALL_MS) return void this.#stalled.delete(member)
    const isNew = !this.#stalled.has(member)
    if (isNew) {
      this.#stalled.set(member, false)
      this.stalls += 1
    }
    const isAway = native.httpSendAway(member, 0) === 1 // again and again: at first there may be nobody else
    // The last one keeps the sockets, and what waits in their queues, until one that was replaced serves.
    const isWaitedFor = this.#shares && !isAway && !this.#isStopping
    const patienceMs = isWaitedFor ? this.#handlerMsMax + LAST_MS : this.#handlerMsMax
    const isReplaced = stalledMs >= patienceMs && this.#stalled.get(member) === false
    if (isReplaced) {
      const reason = `it did not return to its event loop for ${stalledMs} ms (handlerMsMax)`
      if (!endWorker(worker, reason)) return
      this.#stalled.set(member, true)
      this.replacements += 1
      if (this.#isStopping) this.cut += 1
    }
    if (isNew || isReplaced) this.#tell({ url: this.#url, worker, stalledMs, isReplaced })
  }

  #tell(message: StallMessage): void {
    const { worker, url, stalledMs, isReplaced } = message
    const what = isReplaced ? 'it is replaced' : 'other workers accept its connections'
    process.emitWarning(`${worker} of ${url} has not returned to its event loop for ${stalledMs} ms; ${what}`)
    if (stalls.hasSubscribers) stalls.publish(message)
  }
}
