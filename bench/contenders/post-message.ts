/**
 * Bare worker threads: `postMessage` there, `postMessage` back, a map of ids to promises, threads in turn.
 *
 * The least that a pool in JavaScript can be; everything the other pools do comes on top.
 */
import { Worker } from 'node:worker_threads'
import { asItIs, type Contender, type Pool, type PoolSettings } from './contender.ts'
import type { Work } from './work.ts'

/** What goes to a thread. */
export interface Ask {
  readonly id: number
  readonly name: keyof Work
  readonly input: unknown
}

/** What comes back. */
export interface Reply {
  readonly id: number
  readonly value: unknown
}

async function open({ threads }: PoolSettings): Promise<Pool> {
  const waiting = new Map<number, (value: unknown) => void>()
  const script = new URL('./post-message-thread.js', import.meta.url)
  const workers = Array.from({ length: threads }, () => new Worker(script))
  for (const worker of workers) {
    worker.on('message', ({ id, value }: Reply) => {
      waiting.get(id)!(value)
      waiting.delete(id)
    })
  }
  let lastId = 0
  function call(name: keyof Work, input: unknown): Promise<unknown> {
    lastId += 1
    const id = lastId
    workers[id % threads].postMessage({ id, name, input } satisfies Ask)
    return new Promise((resolve) => waiting.set(id, resolve))
  }
  return {
    nothing: () => call('nothing', undefined),
    call,
    valueOf: asItIs,
    close: async () => void (await Promise.all(workers.map((worker) => worker.terminate()))),
  }
}

export default {
  name: 'postMessage',
  settings: 'worker_threads, one message each way, threads in turn',
  open,
} satisfies Contender
