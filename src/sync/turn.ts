/**
 * Waiting for one's turn: with the loop running, or blocking the thread.
 *
 * Both end early by a timeout, the first also by a signal. Who gives up tells the core, which may say that
 * the turn has come already; then it is taken.
 */
import { availableParallelism } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import { shown } from '../base/index.ts'
import { native } from '../native/index.ts'
import { thisWaits } from '../bridge/index.ts'
import { SyncError, type Which } from './errors.ts'

/** How long to wait, and until what. */
export interface WaitOptions {
  /** Longest wait in ms; without it there is no limit. */
  readonly timeoutMs?: number
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal
}

/** How long to block. */
export interface BlockOptions {
  /** Longest wait in ms; without it there is no limit. */
  readonly timeoutMs?: number
  /** The main thread may be blocked: no timer, no I/O and no signal is heard meanwhile. */
  readonly allowBlocking?: boolean
}

/** One call into the core blocks at most so long, so that the thread can be ended. */
const SLICE_MS = 10
const SPINS = availableParallelism() > 1

/**
 * Wait for word about `ticket`, which the core has just queued. Returns the fact.
 * @param cancel Leave the line; false when the turn has come already.
 * @throws {SyncError} `SYNC_TIMEOUT`. @throws the signal's reason.
 */
export async function turn(
  ticket: number,
  which: Which,
  options: WaitOptions | undefined,
  cancel: () => boolean,
): Promise<number> {
  const waits = thisWaits()
  let fact = 0
  let wake = (): void => {}
  const { timeoutMs, signal } = options ?? {}
  const woken = new Promise<void>((resolve) => (wake = resolve))
  const give = (): void => wake()
  waits.hold()
  waits.listen(ticket, (told) => {
    fact = told
    wake()
  })
  const timer = timeoutMs === undefined ? undefined : setTimeout(give, timeoutMs)
  signal?.addEventListener('abort', give, { once: true })
  try {
    if (signal?.aborted !== true) await woken
    if (fact === 0) {
      if (cancel()) {
        signal?.throwIfAborted()
        throw new SyncError('SYNC_TIMEOUT', { ...which, timeoutMs: timeoutMs ?? 0 })
      }
      // Its mail is on its way.
      if (fact === 0) await new Promise<void>((resolve) => (wake = resolve))
    }
    return fact
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', give)
    waits.forget(ticket)
    waits.release()
  }
}

/**
 * Block until there is word about `ticket`, which the core has just queued. Returns the fact.
 * @param cancel As in `turn`.
 * @throws {SyncError} `SYNC_TIMEOUT`.
 */
export function blockingTurn(
  ticket: number,
  which: Which,
  options: BlockOptions | undefined,
  cancel: () => boolean,
): number {
  const timeoutMs = options?.timeoutMs
  const end = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs
  for (;;) {
    const left = end - performance.now()
    const fact = native.syncWait(ticket, Math.max(0, Math.min(SLICE_MS, left)), SPINS)
    if (fact !== 0) return fact
    if (left <= 0) {
      if (cancel()) throw new SyncError('SYNC_TIMEOUT', { ...which, timeoutMs: timeoutMs ?? 0 })
      return native.syncUnwait(ticket)
    }
  }
}

/** @throws {SyncError} `SYNC_BLOCKING` in the main thread, unless it is allowed; `SYNC_ARGUMENT`. */
export function checkBlocking(which: Which, options: BlockOptions | undefined): void {
  if (isMainThread && options?.allowBlocking !== true) throw new SyncError('SYNC_BLOCKING', which)
  if (options?.timeoutMs !== undefined) checkTimeout(options.timeoutMs)
}

/** @throws {SyncError} `SYNC_ARGUMENT`. */
export function checkTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined) return
  if (!(typeof timeoutMs === 'number' && timeoutMs >= 0 && timeoutMs <= 0x7fff_ffff)) {
    const expected = 'a number of milliseconds from 0 to 2147483647'
    throw new SyncError('SYNC_ARGUMENT', { argument: 'timeoutMs', expected, received: shown(timeoutMs) })
  }
}
