/**
 * The parts of the competitors and the harness that the bench calls.
 *
 * Declared here, so that the bench type-checks before its competitors are installed; a call that is not
 * declared is not made.
 */
declare module 'mitata' {
  export function measure(run: () => unknown, options?: Record<string, unknown>): Promise<unknown>
}

declare module 'piscina' {
  export class Piscina {
    constructor(options: {
      filename: string
      minThreads?: number
      maxThreads?: number
      idleTimeout?: number
      concurrentTasksPerWorker?: number
      atomics?: 'sync' | 'async' | 'disabled'
      recordTiming?: boolean
      maxQueue?: number
      taskQueue?: unknown
    })
    run(task: unknown, options?: { name?: string }): Promise<unknown>
    destroy(): Promise<void>
  }
  export class FixedQueue {}
}

declare module 'tinypool' {
  export default class Tinypool {
    constructor(options: {
      filename: string
      minThreads?: number
      maxThreads?: number
      idleTimeout?: number
      concurrentTasksPerWorker?: number
      isolateWorkers?: boolean
      useAtomics?: boolean
    })
    run(task: unknown, options?: { name?: string }): Promise<unknown>
    destroy(): Promise<void>
  }
}

declare module 'workerpool' {
  interface Pool {
    exec(method: string | ((...args: never[]) => unknown), args?: readonly unknown[]): PromiseLike<unknown>
    terminate(force?: boolean): PromiseLike<unknown>
  }
  const workerpool: {
    pool(script: string, options?: Record<string, unknown>): Pool
    worker(methods: Record<string, (...args: never[]) => unknown>): void
  }
  export default workerpool
}

declare module 'poolifier' {
  export class FixedThreadPool {
    constructor(threads: number, script: string, options?: Record<string, unknown>)
    execute(data?: unknown, name?: string): Promise<unknown>
    destroy(): Promise<void>
  }
  export class ThreadWorker {
    constructor(functions: Record<string, (data: never) => unknown>, options?: Record<string, unknown>)
  }
}

declare module 'msgpackr' {
  export class Packr {
    constructor(options?: Record<string, unknown>)
    pack(value: unknown): Uint8Array
    unpack(bytes: Uint8Array): unknown
  }
}

declare module 'cbor-x' {
  export class Encoder {
    constructor(options?: Record<string, unknown>)
    encode(value: unknown): Uint8Array
    decode(bytes: Uint8Array): unknown
  }
}

declare module 'effect' {
  interface Step {
    [Symbol.iterator](): Iterator<unknown, unknown, unknown>
  }
  export const Effect: {
    readonly never: Step
    readonly yieldNow: Step
    sync<A>(thunk: () => A): Step & { [Symbol.iterator](): Iterator<unknown, A, unknown> }
    gen(body: () => Generator<unknown, unknown, never>): Step
    forEach(items: readonly unknown[], work: (item: never) => unknown, options?: object): Step
    forkChild(effect: unknown): Step
    runFork(effect: Step): unknown
    runPromise(effect: Step): Promise<unknown>
    runSync(effect: Step): unknown
    map<A>(effect: unknown, fn: (value: A) => unknown): Step
    try(options: { try: () => unknown; catch: (thrown: unknown) => unknown }): Step
    all(effects: readonly unknown[]): Step
  }
  export const Fiber: { join(fiber: unknown): Step }
}

declare module 'fp-ts' {
  export const io: {
    readonly Functor: { map<A, B>(task: () => A, fn: (value: A) => B): () => B }
  }
}
