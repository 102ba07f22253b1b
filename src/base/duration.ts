/**
 * A duration as text for people, in the unit that fits: `850 ns`, `3.20 ms`, `1.50 s`, `26 h 5 min`.
 *
 * Programs receive numbers and never read it. One below 0, between the clocks of two machines, is 0. Whole
 * milliseconds are differences of dates, which have no digits behind the point: `6 ms`.
 */
export function durationText(differenceMs: number): string {
  const ms = Math.max(0, differenceMs)
  const minutes = Math.floor(ms / 60_000)
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  if (minutes >= 2) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`
  if (Number.isInteger(ms)) return `${ms} ms`
  if (ms >= 1) return `${ms.toFixed(2)} ms`
  return ms >= 0.001 ? `${(ms * 1000).toFixed(1)} µs` : `${Math.round(ms * 1e6)} ns`
}
