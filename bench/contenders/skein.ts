/**
 * A zone of Skein with the `fixed` executor.
 *
 * Named calls are `zone.execute(module, name)`, anonymous ones `zone.run(function)`.
 */
import type { Contender, Pool, PoolSettings } from './contender.ts'

async function open({ threads, spin }: PoolSettings): Promise<Pool> {
  const { Result, zone } = await import('skein')
  const bench = zone.create('bench', { workers: threads, ...(spin ? {} : { spinUs: 0 }), tasksMax: 200_000 })
  const module = new URL('./work.js', import.meta.url)
  const reused = (): void => {}
  return {
    nothing: () => bench.execute(module, 'nothing'),
    anonymous: () => bench.run(() => {}),
    reused: () => bench.run(reused),
    call: (name, input) => bench.execute(module, name, [input]),
    valueOf: (given) => (given instanceof Result ? given.value : given),
    close: () => bench.close(),
  }
}

export default {
  name: 'skein',
  package: 'skein',
  settings: 'fixed executor, tasksMax 200,000, all else default',
  open,
} satisfies Contender
