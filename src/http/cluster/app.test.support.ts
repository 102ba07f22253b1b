/**
 * The app of the zone server's tests, as modules export it: its default export for all tests, others for one.
 *
 * Each worker counts for itself; nothing is shared but the port.
 */
import { writeFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import { use, withMiddleware } from '../app/middleware.ts'
import { rateLimit } from '../middleware/rate-limit.ts'
import type { ServerSocket } from '../websocket/socket.ts'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export default {
  routes: {
    '/': (): string => String(threadId),
    '/constant': 'constant',
    '/slow': async (): Promise<string> => {
      await pause(300)
      return 'slow'
    },
    '/never': (): Promise<never> => new Promise(() => {}),
    '/fails': (): never => {
      throw new Error('on purpose')
    },
    '/dies': (): string => {
      setImmediate(() => process.exit(1))
      return 'dying'
    },
    '/throws': (): string => {
      setImmediate(() => {
        throw new Error('uncaught, on purpose')
      })
      return 'dying'
    },
    // Writes to the file that its query names, and never returns.
    '/spins': ({ url }: Request): never => {
      writeFileSync(decodeURIComponent(new URL(url).search.slice(1)), 'spins')
      for (;;);
    },
  },
  error: (): undefined => undefined,
  limits: { bodyBytesMax: 10 },
  port: 0,
}

/** Records that it was closed, in a file that the environment names. */
export const closes = {
  fetch: (): Response => new Response('closes'),
  close: (): void =>
    writeFileSync(process.env['CORESPUN_TEST_CLOSED']!, `${threadId}\n`, {
      flag: 'a',
    }),
}

/** Makes an app; throws without a response. */
export async function make({ response }: { readonly response: string }): Promise<object> {
  await pause(1)
  return { routes: { '/': response, '/dies': (): never => process.exit(1) } }
}

/** Limits its requests, counted together with all other workers. */
export function limited({ name, requestsMax }: { name: string; requestsMax: number }): object {
  const limit = rateLimit({ requestsMax, windowMs: 3_600_000, name, key: () => 'all' })
  return { routes: { '/': withMiddleware(() => String(threadId), limit) } }
}

/** Responds with its thread, and with a large body; `/dies` ends the worker. */
export function large({ bytes }: { bytes: number }): object {
  const dies = (): never => process.exit(1)
  return {
    routes: { '/': (): string => String(threadId), '/large': () => new Uint8Array(bytes), '/dies': dies },
  }
}

/** Cannot close. */
export const fails = {
  fetch: (): Response => new Response('fails'),
  close: (): never => {
    throw new Error('cannot close')
  },
}

/** An unknown option. */
export const wrong = { routes: {}, prot: 1 }

/** Not an app. */
export const nothing = 7

/** The first request for `/exits` waits without returning until it may go on, and ends its worker. */
export function exiting({ words }: { words: Int32Array }): object {
  const exits = (): string => {
    if (Atomics.add(words, 0, 1) > 0) return 'another one did'
    Atomics.wait(words, 1, 0)
    process.exit()
  }
  return { routes: { '/constant': 'constant', '/exits': exits } }
}

/** Counts requests for `/spins`; the first ones never return. */
export function spinning({ begun, most }: { begun: Int32Array; most: number }): object {
  const spins = (): string => {
    // It does not return, and leaves the cores to the others.
    if (Atomics.add(begun, 0, 1) < most) for (;;) Atomics.wait(begun, 0, Atomics.load(begun, 0))
    return 'over'
  }
  return { routes: { '/': (): string => String(threadId), '/constant': 'constant', '/spins': spins } }
}

/** All sockets are in one room; the first message names the worker, and `die` ends it. */
export const rooms = {
  routes: {
    '/': {
      websocket: {
        open(socket: ServerSocket): void {
          socket.subscribe('all')
          socket.send(String(threadId))
        },
        message(socket: ServerSocket, message: string | Uint8Array): void {
          socket.publish('all', message === 'die' ? 'last words' : message)
          if (message === 'die') process.exit(1)
        },
      },
    },
  },
}

/** All requests are of one client. */
export const sharedLimit = {
  routes: use(
    { '/': (): string => String(threadId) },
    rateLimit({ requestsMax: 8, windowMs: 2 ** 30, key: () => 'k', shared: 'zone' }),
  ),
}
