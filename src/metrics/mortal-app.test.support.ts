/**
 * The app of a server in a zone whose workers die: each of its requests notes that it has begun.
 *
 * Each worker loads it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { store } from '../store/index.ts'

const begun = store.getOrCreate<number>('requests that have begun')

/** Notes first, so that a request that is counted is noted, wherever its thread ends. */
function noted<R>(route: string, handle: () => R): () => R {
  return () => {
    begun.increment(route)
    return handle()
  }
}

export default {
  routes: {
    '/soon': noted('/soon', () => 'soon'),
    '/later': noted('/later', () => delay(20, 'later')),
    '/long': noted('/long', () => new Promise(() => {})),
    '/fails': noted('/fails', () => Promise.reject(new Error('on purpose'))),
    '/dies': noted('/dies', () => process.exit(1)),
    '/stuck': noted('/stuck', () => {
      for (;;);
    }),
  },
  port: 0,
  error: () => undefined,
  handlerMsMax: 1000,
}
