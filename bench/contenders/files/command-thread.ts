/**
 * A worker of the hand-made command of table `files`: chunks of paths or lines in, chunks of lines out.
 *
 * It does all that is work on an item: lines of JSON are read, and results become JSON, on all cores.
 */
import { parentPort, workerData } from 'node:worker_threads'

const { module, name, isJson } = workerData as { module: string; name: string; isJson: boolean }
const exports = (await import(module)) as Record<string, (item: unknown) => unknown>
const { [name]: fn } = exports
parentPort?.on('message', ({ first, items }: { first: number; items: string[] }) => {
  const lines = items.map((item) => JSON.stringify(fn(isJson ? JSON.parse(item) : item)))
  parentPort?.postMessage({ first, lines: `${lines.join('\n')}\n`, count: items.length })
})
