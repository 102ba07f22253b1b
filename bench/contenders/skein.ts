/**
 * A zone of Skein with the `fixed` executor.
 *
 * Named calls are `zone.execute(module, name)`, anonymous ones `zone.run(function)`.
 */
import type { Contender, Pool, PoolSettings } from './contender.ts'

/** A zone with so many workers, or at most so many where it grows. */
export async function openZone(
  { threads, spin }: PoolSettings,
  executor: 'fixed' | 'work-stealing' | 'blocking' | 'cached',
): Promise<Pool> {
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
    valueOf: (given) => (given instanceof Result ? given.value : given),
    close: () => bench.close(),
  }
}

export default {
  name: 'skein',
  package: 'skein',
  settings: 'fixed executor, tasksMax 200,000, all else default',
  open: (settings) => openZone(settings, 'fixed'),
} satisfies Contender
