/**
 * The app of a server whose workers end without a report while others replace them.
 *
 * What reports the end of a thread is taken away first, as where it is terminated or runs out of memory.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { store } from '../../store/index.ts'
import { here } from '../../zone/internal.ts'

/** What is still to happen, and what has happened. */
const ends = store.getOrCreate<number>('ends of workers')

// In the turn after that in which this worker leaves.
here.served.add({
  finishMs: 0,
  mark: undefined,
  mayLeave: () => true,
  strayed: () => false,
  async finish() {
    await new Promise((resolve) => setImmediate(resolve))
    ends.set('has left', 1)
  },
})

function die(): never {
  process.removeAllListeners('exit')
  process.exit(1)
}

export default {
  routes: {
    '/': 'serves',
    '/held': async (): Promise<string> => {
      while (ends.get('goes on') === undefined) await delay(1)
      return 'held'
    },
    // Another worker is asked for, and this one ends before it is released.
    '/stray': (): string => {
      setImmediate(() => {
        process.nextTick(die)
        throw new Error('on purpose')
      })
      return 'stray'
    },
  },
  port: 0,
  // Called once the worker has left: another one has its name.
  close: (): void => {
    if (ends.delete('close')) die()
  },
}
