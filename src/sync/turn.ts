/**
 * Waiting for a grant: with the event loop running, or blocking the thread.
 *
 * Both can time out; the first also ends by a signal. A wait that ends early cancels its request; if the core
 * has granted it already, the grant is taken.
 */
import {
  TIMER_MS_MAX,
  abortSignal,
  cores,
  effects,
  milliseconds,
  ownOptions,
  threads,
  valueOfKind,
} from '../base/index.ts'
import { native } from '../native/index.ts'
import { thisWaits } from '../bridge/index.ts'
import { SyncError, type SyncFacts, wrong } from './errors.ts'

/** Options of calls that wait without blocking the thread. */
export interface WaitOptions {
  /** Longest wait in milliseconds; no limit by default. */
  readonly timeoutMs?: number
  /** Ends the wait; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Options of calls that block the thread. */
export interface BlockOptions {
  /** Longest wait in milliseconds; no limit by default. */
  readonly timeoutMs?: number
  /** Allows the call in the main thread (default `false`), whose timers, I/O and signals wait meanwhile. */
  readonly allowBlocking?: boolean
}

/** Option names, without and with those of semaphores. */
const WAIT = new Set(['timeoutMs', 'signal'])
const BLOCK = new Set(['timeoutMs', 'allowBlocking'])
export const WAIT_PERMITS = new Set([...WAIT, 'permits'])
export const BLOCK_PERMITS = new Set([...BLOCK, 'permits'])

/** Checked {@link WaitOptions}. */
export interface CheckedWait {
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** Longest blocking call into the core: a thread can be terminated only between native calls. */
const SLICE_MS = 10

/**
 * Waits for the fact about `ticket`, which the core has just queued.
 * @param cancel Cancels the request; returns false if it has been granted.
 * @param release Returns what has been granted to a task of a seeded run that has died.
 */
export async function turn(
  ticket: number,
  which: SyncFacts,
  wait: CheckedWait | undefined,
  cancel: () => boolean,
  release?: () => void,
): Promise<number> {
  const waits = thisWaits()
  let fact = 0
  let wake = (): void => {}
  const timeoutMs = wait?.timeoutMs
  const signal = wait?.signal
  const woken = new Promise<void>((resolve) => (wake = resolve))
  const stop = (): void => wake()
  waits.hold()
  waits.listen(ticket, (received) => {
    fact = received
    wake()
  })
  const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })
  const survived = effects.seeded?.()?.whenDead(() => {
    waits.forget(ticket)
    waits.release()
    if (!cancel()) release?.()
  }, `a ${which.kind} ${which.name}`.trim())
  try {
    if (signal?.aborted !== true) await woken
    if (fact === 0) {
      if (cancel()) {
        signal?.throwIfAborted()
        throw new SyncError('SYNC_TIMEOUT', { ...which, timeoutMs: timeoutMs ?? 0 })
      }
      // Granted: the fact is in transit.
      if (fact === 0) await new Promise<void>((resolve) => (wake = resolve))
    }
    return fact
  } finally {
    survived?.()
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
    waits.forget(ticket)
    waits.release()
  }
}

/** As `turn`, but blocks the thread. */
export function blockingTurn(
  ticket: number,
  which: SyncFacts,
  timeoutMs: number | undefined,
  cancel: () => boolean,
): number {
  const end = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs
  const spins = cores() > 1
  for (;;) {
    const left = end - performance.now()
    const fact = native.syncWait(ticket, Math.max(0, Math.min(SLICE_MS, left)), spins)
    if (fact !== 0) return fact
    if (left <= 0) {
      if (cancel()) throw new SyncError('SYNC_TIMEOUT', { ...which, timeoutMs: timeoutMs ?? 0 })
      return native.syncUnwait(ticket)
    }
  }
}

const TIMEOUT = milliseconds<number | undefined>(TIMER_MS_MAX, undefined)

/**
 * The checked options of `call`.
 * @throws {SyncError} `SYNC_ARGUMENT`.
 * @throws the reason of an aborted signal.
 */
export function waitOf(
  call: string,
  options: WaitOptions | undefined,
  known: ReadonlySet<string> = WAIT,
): CheckedWait | undefined {
  if (options === undefined) return undefined
  const own = ownOptions(options, known, wrong, call)
  const signal = valueOfKind(call, 'signal', own.signal, abortSignal, wrong)
  const timeoutMs = valueOfKind(call, 'timeoutMs', own.timeoutMs, TIMEOUT, wrong)
  signal?.throwIfAborted()
  return { timeoutMs, signal }
}

/** The checked `timeoutMs` of a blocking `call`. @throws {SyncError} `SYNC_BLOCKING`, `SYNC_ARGUMENT`. */
export function blockOf(
  call: string,
  which: SyncFacts,
  options: BlockOptions | undefined,
  known: ReadonlySet<string> = BLOCK,
): number | undefined {
  const own = options && ownOptions(options, known, wrong, call)
  if (threads().isMainThread && own?.allowBlocking !== true) throw new SyncError('SYNC_BLOCKING', which)
  return valueOfKind(call, 'timeoutMs', own?.timeoutMs, TIMEOUT, wrong)
}
