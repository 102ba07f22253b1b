/**
 * What keeps a thread from running JavaScript at once: how long its event loop was busy, and its pauses by
 * collections of garbage.
 *
 * Node reports a pause in a later turn of the event loop. Nothing is loaded or observed before somebody asks.
 */
import { otherRuntime } from './runtime.ts'

let sumMs = 0
let isWatching = false

/** For how long the event loop of this thread has been busy since it began, in ms. */
export function busyMs(): number {
  const { nodeTiming } = performance as Partial<typeof performance>
  if (nodeTiming === undefined) return 0 // another runtime
  const { loopStart, idleTime } = nodeTiming
  return loopStart < 0 ? 0 : performance.now() - loopStart - idleTime
}

/** All pauses since this was asked first, in ms. */
export function collectedMs(): number {
  if (!isWatching) watch()
  return sumMs
}

function watch(): void {
  isWatching = true
  if (otherRuntime() !== undefined) return
  const { PerformanceObserver } = process.getBuiltinModule('node:perf_hooks')
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) sumMs += duration
  }).observe({ entryTypes: ['gc'] })
}
