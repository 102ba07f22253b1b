/**
 * The program that `bench counts` looks at: `program.js SUBJECT WARM-UPS COUNT`, one operation after the
 * other.
 *
 * It prints, for each operation, the calls of the native core by all threads and the bytes by which the main
 * thread's heap grows. Its trace has the marks of marks.ts.
 */
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { crossings } from './crossings.ts'
import { eachOperation } from './marks.ts'
import type { PeerData, PeerOrder } from './peer.ts'
import { type Operation, SUBJECTS } from './subjects.ts'

/** What it prints. */
export interface Printed {
  readonly heapBytes: number
  readonly crossings: Readonly<Record<string, number>>
}

const [, , subject = '', warmUps = '', count = ''] = process.argv
const { begin, answer } = SUBJECTS[subject]
const begun = await begin()
const drive = typeof begun === 'number' ? peerOf(begun) : callsOf(begun)

await drive({ count: Number(warmUps), isCounted: false })
globalThis.gc?.()
const [heapBefore, callsBefore] = [heapBytes(), crossings()]
await drive({ count: Number(count), isCounted: true })
const [heapAfter, callsAfter] = [heapBytes(), crossings()]
const made = [...callsAfter].map(([name, calls]) => [name, (calls - callsBefore.get(name)!) / Number(count)])
const printed: Printed = {
  heapBytes: (heapAfter - heapBefore) / Number(count),
  crossings: Object.fromEntries(made.filter(([, calls]) => calls !== 0)),
}
console.log(JSON.stringify(printed))
process.exit(0)

function heapBytes(): number {
  return getHeapStatistics().used_heap_size
}

function callsOf(operation: Operation): (order: PeerOrder) => Promise<void> {
  let done = 0
  return (order) =>
    eachOperation(order, async () => {
      const got = await operation(done++)
      if (!isDeepStrictEqual(got, answer)) throw new Error(`${subject}: ${JSON.stringify(got)}`)
    })
}

function peerOf(port: number): (order: PeerOrder) => Promise<void> {
  const workerData: PeerData = { port, subject }
  const peer = new Worker(new URL('peer.js', import.meta.url), { workerData })
  return async (order) => {
    peer.postMessage(order)
    await once(peer, 'message')
  }
}
