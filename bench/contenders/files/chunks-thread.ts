/**
 * A worker of the hand-made pool of table `files`: chunks of items in, chunks of values out.
 *
 * It is what people write with node:worker_threads alone, without errors or cancellation.
 */
import { parentPort, workerData } from 'node:worker_threads'

const { module, name } = workerData as { module: string; name: string }
const exports = (await import(module)) as Record<string, (item: unknown) => unknown>
const { [name]: fn } = exports
parentPort?.on('message', ({ first, items }: { first: number; items: unknown[] }) => {
  parentPort?.postMessage({ first, values: items.map((item) => fn(item)) })
})
