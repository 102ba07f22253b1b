/**
 * The pools of the bench, by name: open with so many threads, call by name, close.
 *
 * One process holds one contender only, so no contender pays for another's threads, garbage or call sites,
 * and packages are imported on opening. Threads are fixed where a pool allows it, so that none starts or ends
 * inside a measurement; each pool has its fastest settings for small tasks unless its name contains others.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type Work, WORK } from './work.ts'

/** Settings that a condition fixes. */
export interface PoolSettings {
  readonly threads: number
  /** False: idle threads must sleep at once. Pools without such a setting ignore it. */
  readonly spin: boolean
}

/** How long a cancelled endless loop takes, in ms since the abort. */
export interface Abandoned {
  readonly endedMs: number
  readonly nextMs: number
}

/** An open pool. */
export interface Pool {
  /** One call of `nothing` by its name. */
  readonly nothing: () => PromiseLike<unknown>
  /** The same as a function written at the call, a fresh function object each time; absent: not offered. */
  readonly anonymous?: () => PromiseLike<unknown>
  /** The same with one function object for all calls. */
  readonly reused?: () => PromiseLike<unknown>
  call(name: keyof Work, input: unknown): PromiseLike<unknown>
  /** Call a function of joins.ts, for pools whose tasks can fork; absent: not offered. */
  joins?(name: string, input: unknown): PromiseLike<unknown>
  /**
   * On a zone of one worker, cancel an endless loop while another call waits: the time from the abort to the
   * end of the loop's thread, and to the other's result. Absent: not offered.
   */
  abandon?(graceMs: number): Promise<Abandoned>
  /** The value inside the result of a call; absent: the result is the value. */
  unwrap?(result: unknown): unknown
  close(): Promise<unknown>
}

export interface Contender {
  readonly name: string
  /** Package that it opens, loaded before any clock starts; absent: none. */
  readonly package?: string
  open(settings: PoolSettings): Promise<Pool>
}

const WORK_URL = new URL('./work.js', import.meta.url)
const inFolder = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
type Executor = 'fixed' | 'work-stealing' | 'blocking' | 'cached'

const POOLS: Readonly<Record<string, Omit<Contender, 'name'>>> = {
  /** An async function in the calling thread: the harness's own share. */
  direct: {
    open: async () => ({
      nothing: async () => WORK.nothing(),
      call: async (name, input) => WORK[name](input as never),
      close: async () => {},
    }),
  },
  postMessage: { open: postMessage },
  corespun: zoneWith('fixed'),
  /** Its workers are processes. */
  'corespun-process': zoneWith('fixed', { isolation: 'process' }),
  'corespun-work-stealing': zoneWith('work-stealing'),
  'corespun-blocking': zoneWith('blocking'),
  'corespun-cached': zoneWith('cached'),
  /** `zone.node`: the calling thread with the API of a zone. It has no workers: only for empty calls. */
  'corespun-node': {
    package: 'corespun',
    open: async () => {
      const { Result, zone } = await import('corespun/zone')
      return {
        nothing: () => zone.node.execute(WORK_URL, 'nothing'),
        call: (name, input) => zone.node.execute(WORK_URL, name, [input]),
        unwrap: (result) => (result instanceof Result ? result.value : result),
        close: () => zone.node.close(),
      }
    },
  },
  /** Atomics 'sync' is its default and its fastest. */
  piscina: piscinaWith({ concurrentTasksPerWorker: 16, atomics: 'sync' }, true),
  /** Its threads wait in their event loop. */
  'piscina-no-atomics': piscinaWith({ concurrentTasksPerWorker: 16, atomics: 'disabled' }, true),
  /** As it comes: one task in flight per thread. */
  'piscina-default': piscinaWith({}, false),
  tinypool: {
    package: 'tinypool',
    open: async ({ threads }) => {
      const { default: Tinypool } = await import('tinypool')
      const fixed = { filename: WORK_URL.href, minThreads: threads, maxThreads: threads }
      return runsNamed(new Tinypool({ ...fixed, isolateWorkers: false, concurrentTasksPerWorker: 16 }))
    },
  },
  /** It also takes functions, as text with every call; that is its anonymous form. */
  workerpool: {
    package: 'workerpool',
    open: async ({ threads }) => {
      const { default: workerpool } = await import('workerpool')
      const fixed = { minWorkers: threads, maxWorkers: threads, workerType: 'thread' }
      const pool = workerpool.pool(inFolder('./workerpool-thread.js'), fixed)
      return {
        nothing: () => pool.exec('nothing'),
        anonymous: () => pool.exec(() => {}),
        call: (name, input) => pool.exec(name, [input]),
        close: async () => pool.terminate(true),
      }
    },
  },
  /** It sends functions as text, once to each thread; a module is imported by the function. */
  multithreading: {
    package: 'multithreading',
    open: async ({ threads }) => {
      const { initRuntime, move, shutdown, spawn } = await import('multithreading')
      initRuntime({ maxWorkers: threads })
      const work = async (name: keyof Work, input: unknown): Promise<unknown> =>
        (await import('./work.ts')).WORK[name](input as never)
      return {
        nothing: () => spawn(() => {}).join(),
        call: (name, input) => spawn(move(name, input), work).join(),
        unwrap: ({ ok, value, error }) => {
          if (!ok) throw error
          return value
        },
        close: async () => shutdown(),
      }
    },
  },
  /** It blocks the calling thread until its one worker has responded: only for calls one after another. */
  synckit: {
    package: 'synckit',
    open: async () => {
      const { createSyncFn } = await import('synckit')
      const call = createSyncFn(inFolder('./synckit-thread.js'))
      return {
        nothing: async () => call('nothing'),
        call: async (name, input) => call(name, input),
        close: async () => {},
      }
    },
  },
  /** From an Effect: `corespun/effect`, and Effect's own workers. Only by `--contenders`, by name. */
  'corespun-effect': {
    package: 'corespun',
    open: async (settings) => (await import('./effect-pools.ts')).corespunEffect(settings),
  },
  'effect-workers': {
    package: '@effect/platform-node',
    open: async (settings) => (await import('./effect-pools.ts')).effectWorkers(settings),
  },
  knitting: { open: async ({ threads }) => (await import('./knitting-thread.ts')).open(threads) },
  /** Tasks go straight to the threads, which is its fastest for small tasks. */
  poolifier: poolifierWith({ enableEvents: false, enableTasksQueue: false }),
  /** It steals from its task queue; events stay on, since its stealing is made of them. */
  'poolifier-stealing': poolifierWith({ enableTasksQueue: true }),
}

export function contenderOf(name: string): Contender {
  return { name, ...POOLS[name] }
}

/** A zone with so many workers, or at most so many where it grows. */
function zoneWith(executor: Executor, isolation: object = {}): Omit<Contender, 'name'> {
  const grows = executor === 'blocking' || executor === 'cached'
  const workersOf = (count: number): object => (grows ? { workers: { max: count } } : { workers: count })
  const open = async ({ threads, spin }: PoolSettings): Promise<Pool> => {
    const { Result, zone } = await import('corespun/zone')
    const settings = { executor, ...isolation, ...workersOf(threads), tasksMax: 200_000 }
    const bench = zone.create('bench', { ...settings, ...(spin ? {} : { spinUs: 0 }) })
    const reused = (): void => {}
    return {
      nothing: () => bench.execute(WORK_URL, 'nothing'),
      anonymous: () => bench.run(() => {}),
      reused: () => bench.run(reused),
      call: (name, input) => bench.execute(WORK_URL, name, [input]),
      joins: (name, input) => bench.execute(new URL('./joins.js', import.meta.url), name, [input]),
      abandon: (graceMs) => abandon({ executor, ...workersOf(1), graceMs }),
      unwrap: (result) => (result instanceof Result ? result.value : result),
      close: () => bench.close(),
    }
  }
  return { package: 'corespun', open }
}

const ABANDONED = 'abandoned'

async function abandon(settings: object): Promise<Abandoned> {
  const { zone } = await import('corespun')
  const own = zone.create(ABANDONED, settings)
  let start = 0
  const exited = new Promise<number>((resolve) => {
    const onEnded = (message: unknown): void => {
      if (!(message as { worker: string }).worker.startsWith(`${ABANDONED}/`)) return
      unsubscribe('corespun:worker:ended', onEnded)
      resolve(performance.now() - start)
    }
    subscribe('corespun:worker:ended', onEnded)
  })
  try {
    await own.run(() => {})
    const controller = new AbortController()
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const loop = (begun: Int32Array): never => {
      Atomics.store(begun, 0, 1)
      for (;;);
    }
    const endless = own.execute(loop, [begun], { signal: controller.signal }).then(
      () => 'it has ended',
      () => '',
    )
    while (Atomics.load(begun, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    const next = own.run((n: number) => n, 7)
    start = performance.now()
    controller.abort()
    const wrong = await endless
    const answer = await next
    const nextMs = performance.now() - start
    if (answer !== 7 || wrong !== '') throw new Error(`the next call returned ${answer}; the loop: ${wrong}`)
    return { endedMs: await exited, nextMs }
  } finally {
    await own.close()
  }
}

function piscinaWith(options: object, isTuned: boolean): Omit<Contender, 'name'> {
  const open = async ({ threads }: PoolSettings): Promise<Pool> => {
    const { Piscina, FixedQueue } = await import('piscina')
    const tuned = isTuned ? { recordTiming: false, taskQueue: new FixedQueue() } : {}
    const fixed = { filename: WORK_URL.href, minThreads: threads, maxThreads: threads }
    return runsNamed(new Piscina({ ...fixed, ...options, ...tuned }))
  }
  return { package: 'piscina', open }
}

/** The calls of piscina, and of tinypool, its fork. */
function runsNamed(pool: {
  run(input: unknown, options: { name: string }): Promise<unknown>
  destroy(): Promise<void>
}): Pool {
  const named = { name: 'nothing' }
  return {
    nothing: () => pool.run(undefined, named),
    call: (name, input) => pool.run(input, { name }),
    close: () => pool.destroy(),
  }
}

function poolifierWith(options: object): Omit<Contender, 'name'> {
  const open = async ({ threads }: PoolSettings): Promise<Pool> => {
    const { FixedThreadPool } = await import('poolifier')
    const all = { workerChoiceStrategy: 'ROUND_ROBIN', ...options }
    const pool = new FixedThreadPool(threads, inFolder('./poolifier-thread.js'), all)
    return {
      nothing: () => pool.execute(undefined, 'nothing'),
      call: (name, input) => pool.execute(input, name),
      close: () => pool.destroy(),
    }
  }
  return { package: 'poolifier', open }
}

/** A message to a thread of {@link postMessage}, which its reply carries back with the value. */
export interface Ask {
  readonly id: number
  readonly name: keyof Work
  readonly input: unknown
}

/** The least that a pool can be: one message each way, a map of ids to promises, threads in turn. */
async function postMessage({ threads }: PoolSettings): Promise<Pool> {
  const waiting = new Map<number, (value: unknown) => void>()
  const script = new URL('./post-message-thread.js', import.meta.url)
  const workers = Array.from({ length: threads }, () => new Worker(script))
  for (const worker of workers) {
    worker.on('message', ({ id, value }: { readonly id: number; readonly value: unknown }) => {
      waiting.get(id)!(value)
      waiting.delete(id)
    })
  }
  let lastId = 0
  function call(name: keyof Work, input: unknown): Promise<unknown> {
    lastId += 1
    const id = lastId
    workers[id % threads].postMessage({ id, name, input } satisfies Ask)
    return new Promise((resolve) => waiting.set(id, resolve))
  }
  const close = (): Promise<unknown> => Promise.all(workers.map((worker) => worker.terminate()))
  return { nothing: () => call('nothing', undefined), call, close }
}
