/**
 * piscina as it comes, with fixed threads: one task in flight per thread.
 *
 * See piscina.ts.
 */
import type { Contender } from './contender.ts'
import { openPiscina } from './piscina.ts'

export default {
  name: 'piscina-default',
  package: 'piscina',
  settings: 'defaults, fixed threads',
  open: (settings) => openPiscina(settings, { tuned: false }),
} satisfies Contender
