/**
 * A zone of Skein with the `blocking` executor, as many workers at most as asked for.
 *
 * All else is the contender `skein`.
 */
import type { Contender } from './contender.ts'
import { openZone } from './skein.ts'

export default {
  name: 'skein-blocking',
  package: 'skein',
  settings: 'blocking executor, tasksMax 200,000, all else default',
  open: (settings) => openZone(settings, 'blocking'),
} satisfies Contender
