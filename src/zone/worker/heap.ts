/**
 * How much of its heap a worker uses, looked at between tasks.
 *
 * After a turn of the loop, which tasks that take no time share: asking V8 takes a microsecond. What is
 * garbage counts, since only a collection would show how much that is.
 */
import type { HeapNote } from '../owner/recycle.ts'

/** The owner, which may be blocked or unable to start another worker, is asked again after this time. */
const AGAIN_MS = 1000

/** Returns what is to be called between tasks. Beyond that many megabytes the owner gets a message. */
export function watchHeap(heapMb: number, post: (note: HeapNote) => void): () => void {
  const { getHeapStatistics } = process.getBuiltinModule('node:v8')
  const bytesMax = heapMb * 1024 * 1024
  let postedMs = -AGAIN_MS
  return () => {
    if (getHeapStatistics().used_heap_size < bytesMax) return
    const nowMs = performance.now()
    if (nowMs - postedMs < AGAIN_MS) return
    postedMs = nowMs
    post({ corespunHeapFull: true })
  }
}
