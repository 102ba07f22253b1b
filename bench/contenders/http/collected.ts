/**
 * Corespun's server for the table of collectors: it counts its own collections when its parent asks.
 *
 * `collected.js <port>`, with an IPC channel: `start` begins counting, `stop` sends the counts.
 */
import { GCProfiler } from 'node:v8'
import { serve } from 'corespun/http'
import { serveOrders } from '../../harness/orders.ts'
import { routes } from './app.ts'

/** What was counted between `start` and `stop`. */
export interface Collected {
  readonly bytes: number
  readonly collections: number
  readonly pauseUs: number
  readonly longestUs: number
  /** Resident memory at the end. */
  readonly rssMb: number
}

await serve({ quiet: true, core: 'native', host: '127.0.0.1', port: Number(process.argv[2]), routes })

let profiler = new GCProfiler()
let usedBytes = 0
serveOrders((order) => {
  if (order === 'stop') return counted()
  profiler = new GCProfiler()
  usedBytes = process.memoryUsage().heapUsed
  profiler.start()
  return undefined
})

/** Bytes allocated are what the heap grew by between collections. */
function counted(): Collected {
  const { statistics } = profiler.stop()
  let [bytes, pauseUs, longestUs] = [0, 0, 0]
  for (const { cost, beforeGC, afterGC } of statistics) {
    bytes += beforeGC.heapStatistics.usedHeapSize - usedBytes
    usedBytes = afterGC.heapStatistics.usedHeapSize
    pauseUs += cost
    longestUs = Math.max(longestUs, cost)
  }
  bytes += Math.max(0, process.memoryUsage().heapUsed - usedBytes)
  const rssMb = process.memoryUsage.rss() / 2 ** 20
  return { bytes, collections: statistics.length, pauseUs, longestUs, rssMb }
}
