/**
 * Timing of one function in this process: mitata's measured loop, told to do only what the table says.
 *
 * mitata was taken before tinybench because its loop is generated for each function (no shared call site that
 * other contenders could make megamorphic) and unrolls calls shorter than the clock. It is loaded on first
 * use, so that everything that does not measure works without the competitors installed.
 */
interface MitataStats {
  readonly samples: readonly number[]
  readonly p50: number
  readonly p99: number
  readonly avg: number
  readonly ticks: number
}

/** Nanoseconds of one slice. */
export interface Slice {
  readonly p50Ns: number
  readonly p99Ns: number
  readonly meanNs: number
  /** Calls that were timed. */
  readonly calls: number
}

/**
 * Time `run` for about `sliceMs`.
 *
 * @param each True: one clock reading around each call, for latencies of microseconds and above.
 *   False: calls shorter than 65 µs are timed in batches of 4096, for costs of nanoseconds.
 */
export async function timeSlice(run: () => unknown, sliceMs: number, each: boolean): Promise<Slice> {
  const { measure } = await import('mitata')
  const stats = (await measure(run, {
    gc: false,
    inner_gc: false,
    min_cpu_time: sliceMs * 1e6,
    min_samples: 12,
    ...(each ? { batch_threshold: -1 } : {}),
  })) as MitataStats
  return { p50Ns: stats.p50, p99Ns: stats.p99, meanNs: stats.avg, calls: stats.ticks }
}
