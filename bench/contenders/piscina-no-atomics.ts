/**
 * piscina at its best settings but without Atomics: its threads wait in their event loop.
 *
 * See piscina.ts.
 */
import type { Contender } from './contender.ts'
import { openPiscina } from './piscina.ts'

export default {
  name: 'piscina-no-atomics',
  package: 'piscina',
  settings: 'as piscina, atomics disabled',
  open: (settings) =>
    openPiscina(settings, { concurrentTasksPerWorker: 16, atomics: 'disabled', tuned: true }),
} satisfies Contender
