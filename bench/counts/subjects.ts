/**
 * What is counted: an operation of each kind, and what it returns.
 *
 * A peer over a socket is a thread that is not counted (peer.ts); the others are called by the main thread.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Zone, zone } from 'corespun'
import type { TraceMarks } from './crossings.ts'

/** The main thread of the program has the number of its process. */
export type Operation = (at: number) => Promise<unknown>
export interface Subject {
  readonly title: string
  /** The port of a server that a peer calls, or what the main thread calls. */
  begin(): Promise<number | Operation>
  /** Of each operation of the main thread. */
  readonly answer?: unknown
  readonly isOnDisk?: boolean
  /** What the clock decides. */
  readonly varies?: readonly string[]
}

/** One worker, which never looks for work: it sleeps when nothing waits. */
const own = (): Zone => zone.create('counted', { workers: 1, spinUs: 0 })

/**
 * Who waits for a file looks at it by the clock, and threads that work at once may be woken once for two
 * messages.
 */
const LOOKS = ['epoll_pwait', 'fcntl', 'futex wait', 'futex wake', 'read', 'write']
const ROW = { id: 17, name: 'Ada Lovelace', tags: ['a', 'b'], price: 12.5, at: 'x'.repeat(900) }

export const SUBJECTS: Readonly<Record<string, Subject>> = {
  call: {
    title: 'a call of two numbers, run in a worker',
    answer: 3,
    async begin() {
      const [workers, main] = [own(), process.pid]
      const add = (a: number, b: number, caller: number): number => {
        ;(globalThis as unknown as TraceMarks).whenAsleep(caller)
        return a + b
      }
      return () => workers.run(add, 1, 2, main)
    },
  },
  row: {
    title: 'a call with an object of 1 kB, which is returned',
    answer: ROW,
    async begin() {
      const [workers, main] = [own(), process.pid]
      const same = (row: typeof ROW, caller: number): typeof ROW => {
        ;(globalThis as unknown as TraceMarks).whenAsleep(caller)
        return row
      }
      return () => workers.run(same, ROW, main)
    },
  },
  request: {
    title: 'a request of 28 bytes on an open connection, with a text as response; native core',
    begin: () => served('native'),
  },
  'request on node:http': {
    title: 'the same on the core that is node:http',
    begin: () => served('node'),
  },
  frame: {
    title: 'a text frame of a WebSocket, which is sent back',
    async begin() {
      const { serve } = await import('corespun/http')
      const echo = {
        websocket: { message: (peer: { send(data: unknown): void }, data: unknown) => peer.send(data) },
      }
      return (await serve({ port: 0, quiet: true, routes: { '/': echo as never } })).port
    },
  },
  step: {
    title: 'a step of a durable run in a file, whose record is on disk',
    answer: 1,
    isOnDisk: true,
    varies: LOOKS,
    async begin() {
      const [{ durable, runs, step }, { connect }] = await Promise.all([
        import('corespun/durable'),
        import('corespun/fleet'),
      ])
      let waits: ((value: number) => void) | undefined
      let reached = (): void => {}
      const isReached = (): Promise<void> => new Promise((resolve) => (reached = resolve))
      const wait = (): Promise<number> =>
        new Promise((resolve) => {
          waits = resolve
          reached()
        })
      const steps = durable('steps', function* (_: null) {
        for (;;) yield* step('one', wait)
      })
      const first = isReached()
      const work = await runs(await connect(database()), { definitions: [steps] })
      await work.start('steps', null, { key: 'k' })
      await first
      return async () => {
        const next = isReached()
        waits?.(1)
        await next
        return 1
      }
    },
  },
  job: {
    title: 'a job in a file, from submit to result in one process',
    answer: 4,
    isOnDisk: true,
    varies: LOOKS,
    async begin() {
      const { connect, host } = await import('corespun/fleet')
      const fleet = await connect(database())
      const module = new URL('data:text/javascript,export const double = (n) => n * 2')
      await host(fleet, { name: 'counted', module, version: 'v1', jobsMax: 1 })
      const jobs = fleet.jobs<{ double(n: number): number }>('counted')
      return async (at) => {
        await jobs.submit(`job ${at}`, 'double', [2])
        return jobs.result(`job ${at}`)
      }
    },
  },
}

async function served(core: 'native' | 'node'): Promise<number> {
  const { serve } = await import('corespun/http')
  return (await serve({ port: 0, core, quiet: true, routes: { '/': () => 'hello' } })).port
}

function database(): string {
  return `sqlite:${join(mkdtempSync(join(tmpdir(), 'corespun-counts-')), 'own.db')}`
}
