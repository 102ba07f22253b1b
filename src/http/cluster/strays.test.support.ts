/**
 * An app whose handlers leave errors behind that nobody catches, and what the client of each route receives:
 * an oracle that looks at one request alone.
 */
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { fork } from '../../fiber/index.ts'
import { chunks, events } from '../app/events.ts'
import { accessLog } from '../middleware/logs/access-log.ts'
import { use } from '../app/middleware.ts'

const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

function throwLater(kind: string): void {
  setTimeout(() => {
    throw new Error(kind)
  }, 1)
}

async function* pieces(): AsyncGenerator<string> {
  for (let piece = 1; piece <= 5; piece++) {
    await pause(piece)
    yield `${piece}`
  }
}

async function* endless(): AsyncGenerator<string> {
  for (let tick = 0; ; tick++) {
    yield `${tick}`
    await pause(1)
  }
}

/** What is expected of a route: its status and body, and whether an error strays. */
export interface Expected {
  readonly status: number
  readonly body: string
  readonly strays: boolean
}

const FAILED = { status: 500, body: 'Internal Server Error' }

export const EXPECTED: Readonly<Record<string, Expected>> = {
  '/plain': { status: 200, body: 'plain', strays: false },
  '/constant': { status: 200, body: 'constant', strays: false },
  '/slow': { status: 200, body: 'slow', strays: false },
  '/stream': { status: 200, body: '12345', strays: false },
  '/throws': { ...FAILED, strays: false },
  '/rejects': { ...FAILED, strays: false },
  '/rejection': { status: 200, body: 'rejection', strays: true },
  '/late-rejection': { status: 200, body: 'late', strays: true },
  '/timer': { status: 200, body: 'timer', strays: true },
  '/fiber': { status: 200, body: 'fiber', strays: true },
  '/stream-timer': { status: 200, body: '12345', strays: true },
  '/never-timer': { ...FAILED, strays: true },
  '/never-rejection': { ...FAILED, strays: true },
  '/callback': { ...FAILED, strays: true },
}

/** The channel of the access log: path, status and bytes of each request. */
export const LOG = 'corespun.test.strays'
const channel = new BroadcastChannel(LOG)
channel.unref()
const log = accessLog({
  log: ({ path, status, bytes }) => channel.postMessage(`${path} ${status} ${bytes}`),
  skip: ({ path }) => EXPECTED[path] === undefined,
})

/** The app. */
export default {
  routes: use(
    {
      '/thread': (): string => String(threadId),
      '/plain': (): string => 'plain',
      '/constant': 'constant',
      '/slow': (): Promise<string> => pause(20).then(() => 'slow'),
      '/stream': () => chunks(pieces()),
      '/events': () => events(endless()),
      '/throws': (): never => {
        throw new Error('thrown')
      },
      '/rejects': async (): Promise<never> => {
        await later()
        throw new Error('rejected')
      },
      '/rejection': (): string => {
        void Promise.reject(new Error('rejection'))
        return 'rejection'
      },
      '/late-rejection': async (): Promise<string> => {
        await later()
        void pause(5).then(() => Promise.reject(new Error('late rejection')))
        return 'late'
      },
      '/timer': (): string => {
        throwLater('timer')
        return 'timer'
      },
      '/fiber': (): string => {
        fork(failing())
        return 'fiber'
      },
      '/stream-timer': () => {
        throwLater('timer of a stream')
        return chunks(pieces())
      },
      '/never-timer': (): Promise<never> => {
        throwLater('timer of a request')
        return new Promise(() => {})
      },
      '/never-rejection': async (): Promise<never> => {
        await later()
        void Promise.reject(new Error('rejection of a request'))
        return new Promise(() => {})
      },
      '/callback': (): Promise<string> =>
        new Promise((resolve) => {
          process.nextTick(() => {
            setTimeout(resolve, 50, 'too late')
            throw new Error('callback')
          })
        }),
      '/socket': { websocket: { message: () => {} } },
    },
    log,
  ),
  error: (): undefined => undefined,
}

// oxlint-disable-next-line require-yield -- it fails before
function* failing(): Generator<never, never> {
  throw new Error('fiber')
}
