/**
 * A zone of Skein with the `work-stealing` executor, as many workers at most as asked for.
 *
 * All else is the contender `skein`.
 */
import type { Contender } from './contender.ts'
import { openZone } from './skein.ts'

export default {
  name: 'skein-work-stealing',
  package: 'skein',
  settings: 'work-stealing executor, tasksMax 200,000, all else default',
  open: (settings) => openZone(settings, 'work-stealing'),
} satisfies Contender
