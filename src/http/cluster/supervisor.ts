/**
 * Detects workers of a server that do not return to their event loops, and has others accept their
 * connections.
 *
 * The kernel assigns each worker's socket its share of all new connections, even while that worker is
 * blocked. Therefore a worker without a turn for a second is sent away: another accepts from its socket until
 * it turns again. After `handlerMsMax` it is terminated, and the zone replaces it. The native core records
 * each turn and needs no timer for it: a worker without events is not stalled. The core on node:http records
 * nothing; its workers are not watched.
 */
import { channel } from 'node:diagnostics_channel'
import { native } from '../../native/index.ts'
import { endWorker } from '../../zone/internal.ts'
import { type Board, rowOf } from './board.ts'

export const CHECK_MS = 1000
/** Time without a turn after which a worker is sent away. */
const STALL_MS = 1000

/** Time for a worker that replaces another to begin to serve. */
const LAST_MS = 30_000

/** A message on the channel `corespun:http:stall`. */
export interface StallEvent {
  /** The URL of the server. */
  readonly url: string
  /** The worker, such as `web/0`. */
  readonly worker: string
  /** Time since it last returned to its event loop, ms. */
  readonly stalledMs: number
  /** Whether it is terminated and replaced; otherwise others accept its connections. */
  readonly isReplaced: boolean
}

const stalls = channel('corespun:http:stall')

export class Supervisor {
  /** Times that a worker was found stalled. */
  stalls = 0
  /** Of these, times that it was terminated and replaced. */
  replacements = 0
  /** Workers that were terminated while the server stopped. */
  cut = 0
  #isStopping = false
  readonly #board: Board
  readonly #url: string
  readonly #handlerMsMax: number
  readonly #shares: boolean
  /** Stalled members, and whether they were terminated. */
  readonly #stalled = new Map<number, boolean>()
  #checkedMs = performance.now()

  constructor(parts: {
    readonly board: Board
    readonly url: string
    readonly handlerMsMax: number
    /** Whether there are several workers. */
    readonly shares: boolean
  }) {
    this.#board = parts.board
    this.#url = parts.url
    this.#handlerMsMax = parts.handlerMsMax
    this.#shares = parts.shares
  }

  /** Checks these workers; called every `CHECK_MS`. */
  check(workers: readonly string[]): void {
    const before = this.#checkedMs
    this.#checkedMs = performance.now()
    // This thread was blocked itself, perhaps with all others: they have their turn first.
    if (this.#checkedMs - before > 2 * CHECK_MS) return
    for (const worker of workers) {
      const member = this.#board.member(rowOf(worker))
      if (member !== 0) this.#judge(worker, member)
    }
  }

  /** The server stops: sockets of stalled workers close with their queues. */
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
    const isAway = native.httpSendAway(member, 0) === 1 // repeated: at first there may be no other member
    // The last one keeps the sockets and their queues until a replaced worker serves.
    const waitsForOthers = this.#shares && !isAway && !this.#isStopping
    const timeoutMs = waitsForOthers ? this.#handlerMsMax + LAST_MS : this.#handlerMsMax
    const isReplaced = stalledMs >= timeoutMs && this.#stalled.get(member) === false
    if (isReplaced) {
      const reason = `it did not return to its event loop for ${stalledMs} ms (handlerMsMax)`
      if (!endWorker(worker, reason)) return
      this.#stalled.set(member, true)
      this.replacements += 1
      if (this.#isStopping) this.cut += 1
    }
    if (isNew || isReplaced) this.#report({ url: this.#url, worker, stalledMs, isReplaced })
  }

  #report(message: StallEvent): void {
    const { worker, url, stalledMs, isReplaced } = message
    const what = isReplaced ? 'it is replaced' : 'other workers accept its connections'
    process.emitWarning(`${worker} of ${url} has not returned to its event loop for ${stalledMs} ms; ${what}`)
    if (stalls.hasSubscribers) stalls.publish(message)
  }
}
