/**
 * `zone.node`: the calling thread with the API of a zone.
 *
 * It has no workers, so it stands only where calls are empty: for what the API itself costs.
 */
import type { Contender, Pool } from './contender.ts'

async function open(): Promise<Pool> {
  const { Result, zone } = await import('skein')
  const module = new URL('./work.js', import.meta.url)
  return {
    nothing: () => zone.node.execute(module, 'nothing'),
    call: (name, input) => zone.node.execute(module, name, [input]),
    valueOf: (given) => (given instanceof Result ? given.value : given),
    close: () => zone.node.close(),
  }
}

export default {
  name: 'skein-node',
  package: 'skein',
  settings: 'zone.node: the calling thread, no workers',
  open,
} satisfies Contender
