/**
 * A zone of Skein with the `fixed` executor.
 *
 * Named calls are `zone.execute(module, name)`, anonymous ones `zone.run(function)`.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Abandoned, Contender, Pool, PoolSettings } from './contender.ts'

type Executor = 'fixed' | 'work-stealing' | 'blocking' | 'cached'
const ABANDONED = 'abandoned'

/** A zone with so many workers, or at most so many where it grows. */
export async function openZone({ threads, spin }: PoolSettings, executor: Executor): Promise<Pool> {
  const { Result, zone } = await import('skein')
  const grows = executor === 'blocking' || executor === 'cached'
  const bench = zone.create('bench', {
    executor,
    ...(grows ? { workersMax: threads } : { workers: threads }),
    ...(spin ? {} : { spinUs: 0 }),
    tasksMax: 200_000,
  })
  const module = new URL('./work.js', import.meta.url)
  const reused = (): void => {}
  return {
    nothing: () => bench.execute(module, 'nothing'),
    anonymous: () => bench.run(() => {}),
    reused: () => bench.run(reused),
    call: (name, input) => bench.execute(module, name, [input]),
    joins: (name, input) => bench.execute(new URL('./joins.js', import.meta.url), name, [input]),
    abandon: (graceMs) => abandon(executor, graceMs),
    valueOf: (given) => (given instanceof Result ? given.value : given),
    close: () => bench.close(),
  }
}

async function abandon(executor: Executor, graceMs: number): Promise<Abandoned> {
  const { zone } = await import('skein')
  const grows = executor === 'blocking' || executor === 'cached'
  const own = zone.create(ABANDONED, { executor, ...(grows ? { workersMax: 1 } : { workers: 1 }), graceMs })
  let start = 0
  const gone = new Promise<number>((resolve) => {
    const told = (message: unknown): void => {
      if (!(message as { worker: string }).worker.startsWith(`${ABANDONED}/`)) return
      unsubscribe('skein.worker.ended', told)
      resolve(performance.now() - start)
    }
    subscribe('skein.worker.ended', told)
  })
  try {
    await own.run(() => {})
    const controller = new AbortController()
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const loop = (begun: Int32Array): never => {
      Atomics.store(begun, 0, 1)
      for (;;);
    }
    const endless = own.execute(loop, [begun], { signal: controller.signal }).then(
      () => 'it has ended',
      () => '',
    )
    while (Atomics.load(begun, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    const next = own.run((n: number) => n, 7)
    start = performance.now()
    controller.abort()
    const wrong = await endless
    const answer = await next
    const nextMs = performance.now() - start
    if (answer !== 7 || wrong !== '') throw new Error(`the next call gave ${answer}; the loop: ${wrong}`)
    return { goneMs: await gone, nextMs }
  } finally {
    await own.close()
  }
}

export default {
  name: 'skein',
  package: 'skein',
  settings: 'fixed executor, tasksMax 200,000, all else default',
  open: (settings) => openZone(settings, 'fixed'),
} satisfies Contender
