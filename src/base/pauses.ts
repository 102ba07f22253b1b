/**
 * What keeps a thread from running JavaScript at once: how long its event loop was busy, and its pauses by
 * collections of garbage.
 *
 * Node reports a pause in a later turn of the event loop. Nothing is loaded or observed before somebody asks.
 */

import { otherRuntime } from './runtime.ts'

/** A pause by a collection. */
export interface Pause {
  /** By `performance.now()`. */
  readonly startMs: number
  readonly ms: number
  /** V8's flags of its kind. */
  readonly kind: number
}

interface GcEntry {
  readonly startTime: number
  readonly duration: number
  readonly detail: { readonly kind: number }
}

/** Pauses that are remembered; older ones are dropped. */
const KEPT_MAX = 1024

const listeners = new Set<(pause: Pause) => void>()
const kept: Pause[] = []
let sumMs = 0
let isWatching = false
/** Since when, by `performance.now()`. */
let watchedMs = Infinity

/** For how long the event loop of this thread has been busy since it began, in ms. */
export function busyMs(): number {
  const { nodeTiming } = performance as Partial<typeof performance>
  if (nodeTiming === undefined) return 0 // another runtime
  const { loopStart, idleTime } = nodeTiming
  return loopStart < 0 ? 0 : performance.now() - loopStart - idleTime
}

/** Pauses are remembered from now on, and passed to `listener`. */
export function watchPauses(listener?: (pause: Pause) => void): void {
  if (listener !== undefined) listeners.add(listener)
  if (isWatching) return
  isWatching = true
  if (otherRuntime() !== undefined) return
  watchedMs = performance.now()
  const { PerformanceObserver } = process.getBuiltinModule('node:perf_hooks')
  new PerformanceObserver((list) => {
    for (const { startTime, duration, detail } of list.getEntries() as unknown as GcEntry[]) {
      const pause: Pause = { startMs: startTime, ms: duration, kind: detail.kind }
      sumMs += duration
      if (kept.push(pause) > 2 * KEPT_MAX) kept.splice(0, KEPT_MAX)
      for (const listener of listeners) listener(pause)
    }
  }).observe({ entryTypes: ['gc'] })
}

/** All pauses since they are watched, which they are from now on, in ms. */
export function collectedMs(): number {
  watchPauses()
  return sumMs
}

/** How much of that time was pauses, in ms; `undefined`: it was not watched. Both by `performance.now()`. */
export function pausedMs(fromMs: number, toMs: number): number | undefined {
  if (fromMs < watchedMs) return undefined
  let ms = 0
  for (const { startMs, ms: lastedMs } of kept)
    ms += Math.max(0, Math.min(toMs, startMs + lastedMs) - Math.max(fromMs, startMs))
  return ms
}
