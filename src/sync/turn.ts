/**
 * Waiting for one's turn: with the loop running, or blocking the thread.
 *
 * Both end early by a timeout, the first also by a signal. Who gives up tells the core, which may say that
 * the turn has come already; then it is taken.
 */
import { availableParallelism } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import { TIMER_MS_MAX, abortSignal, milliseconds, ownOptions, valueOfKind } from '../base/index.ts'
import { native } from '../native/index.ts'
import { thisWaits } from '../bridge/index.ts'
import { SyncError, type Which, wrong } from './errors.ts'

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

/** The names of both, and those of semaphores. */
const WAIT = new Set(['timeoutMs', 'signal'])
const BLOCK = new Set(['timeoutMs', 'allowBlocking'])
export const WAIT_PERMITS = new Set([...WAIT, 'permits'])
export const BLOCK_PERMITS = new Set([...BLOCK, 'permits'])

/** Checked {@link WaitOptions}. */
export interface Wait {
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
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
  wait: Wait | undefined,
  cancel: () => boolean,
): Promise<number> {
  const waits = thisWaits()
  let fact = 0
  let wake = (): void => {}
  const timeoutMs = wait?.timeoutMs
  const signal = wait?.signal
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
  timeoutMs: number | undefined,
  cancel: () => boolean,
): number {
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

const TIMEOUT = milliseconds<number | undefined>(TIMER_MS_MAX, undefined)

/**
 * The checked options of `call`, which are `known`, if there are any.
 * @throws {SyncError} `SYNC_ARGUMENT`. @throws the signal's reason when it is aborted already.
 */
export function waitOf(
  call: string,
  options: WaitOptions | undefined,
  known: ReadonlySet<string> = WAIT,
): Wait | undefined {
  if (options === undefined) return undefined
  const own = ownOptions(options, known, wrong, call)
  const signal = valueOfKind(call, 'signal', own.signal, abortSignal, wrong)
  const timeoutMs = valueOfKind(call, 'timeoutMs', own.timeoutMs, TIMEOUT, wrong)
  signal?.throwIfAborted()
  return { timeoutMs, signal }
}

/**
 * The same for one that blocks: its `timeoutMs`.
 * @throws {SyncError} `SYNC_BLOCKING` in the main thread, unless it is allowed; `SYNC_ARGUMENT`.
 */
export function blockOf(
  call: string,
  which: Which,
  options: BlockOptions | undefined,
  known: ReadonlySet<string> = BLOCK,
): number | undefined {
  const own = options && ownOptions(options, known, wrong, call)
  if (isMainThread && own?.allowBlocking !== true) throw new SyncError('SYNC_BLOCKING', which)
  return valueOfKind(call, 'timeoutMs', own?.timeoutMs, TIMEOUT, wrong)
}
