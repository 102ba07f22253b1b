/**
 * The two ways from an Effect to another thread: `corespun/effect`, and the worker pool of Effect itself.
 *
 * Both are called from outside by `runPromise`, like the other pools, so that is in the figures of both.
 * Effect 4 has its pool as a protocol of its RPC, whose payloads are JSON: `undefined` travels as null.
 */
import { Worker } from 'node:worker_threads'
import type { Pool, PoolSettings } from './pools.ts'

const WORK_URL = new URL('./work.js', import.meta.url)
const CONCURRENCY = 16

export async function corespunEffect({ threads, spin }: PoolSettings): Promise<Pool> {
  const [Effect, { fromZone }, { zone }] = await Promise.all([
    import('effect/Effect'),
    import('corespun/effect'),
    import('corespun/zone'),
  ])
  const bench = zone.create('bench', { workers: threads, tasksMax: 200_000, ...(spin ? {} : { spinUs: 0 }) })
  const work = fromZone(bench).module<typeof import('./work.ts')>(WORK_URL)
  return {
    nothing: () => Effect.runPromise(work.nothing()),
    call: (name, input) => Effect.runPromise(work[name as 'echo'](input)),
    close: () => bench.close(),
  }
}

export async function effectWorkers({ threads }: PoolSettings): Promise<Pool> {
  const [Context, Layer, ManagedRuntime, { RpcClient }, { NodeWorker }, { Calls }] = await Promise.all([
    import('effect/Context'),
    import('effect/Layer'),
    import('effect/ManagedRuntime'),
    import('effect/rpc'),
    import('@effect/platform-node'),
    import('./effect-calls.ts'),
  ])
  const client = Context.Service('bench/Client')
  const spawned = NodeWorker.layer(() => new Worker(new URL('./effect-thread.js', import.meta.url)))
  const protocol = RpcClient.layerProtocolWorker({ size: threads, concurrency: CONCURRENCY })
  const layer = Layer.provide(Layer.effect(client, RpcClient.make(Calls)), Layer.provide(protocol, spawned))
  const runtime = ManagedRuntime.make(layer)
  const { call } = await runtime.runPromise(client)
  const send = (name: string, input: unknown): Promise<unknown> =>
    runtime.runPromise(call({ name, input: input ?? null }))
  return {
    nothing: () => send('nothing', null),
    call: send,
    unwrap: (value) => value ?? undefined,
    close: () => runtime.dispose(),
  }
}
