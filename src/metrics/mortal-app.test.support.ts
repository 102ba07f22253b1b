/**
 * The app of a server in a zone whose workers die: each of its requests notes that it has begun.
 *
 * Each worker loads it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { HttpRequest } from '../http/index.ts'
import { store } from '../store/index.ts'

const begun = store.getOrCreate<number>('requests that have begun')

/** Notes first, so that a request that is counted is noted, and one whose client waits for that to leave. */
function noted<R>(route: string, handle: () => R): (request: HttpRequest) => R {
  return ({ url }) => {
    begun.increment(route)
    const [, leaver] = url.split('?')
    if (leaver !== undefined) begun.set(leaver, 1)
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
