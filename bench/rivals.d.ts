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
    run(task: unknown, options?: { name?: string; signal?: AbortSignal }): Promise<unknown>
    close(): Promise<void>
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
    promise<A>(make: () => Promise<A>): Step
    runFork(effect: Step): unknown
    runPromise(effect: Step): Promise<unknown>
    runSync(effect: Step): unknown
    map<A>(effect: unknown, fn: (value: A) => unknown): Step
    try(options: { try: () => unknown; catch: (thrown: unknown) => unknown }): Step
    all(effects: readonly unknown[]): Step
  }
  export const Fiber: { join(fiber: unknown): Step }
}

declare module 'lmdb' {
  interface Database {
    get(key: string): unknown
    putSync(key: string, value: unknown): boolean
    close(): Promise<void>
  }
  export function open(options: Record<string, unknown>): Database
}

declare module 'sharedmap' {
  export default class SharedMap {
    constructor(maxSize: number, keySize: number, objectSize: number)
    set(key: string, value: string | number): void
    get(key: string): string | undefined
  }
}

declare module 'fp-ts' {
  export const io: { readonly Functor: { map<A, B>(task: () => A, fn: (value: A) => B): () => B } }
}

declare module 'fastify' {
  interface FastifyRequest {
    readonly params: { readonly id: string }
    readonly body: unknown
  }
  interface FastifyReply {
    header(name: string, value: string): FastifyReply
    send(body: unknown): FastifyReply
  }
  type Route = (request: FastifyRequest, reply: FastifyReply) => unknown
  interface Fastify {
    get(path: string, route: Route): Fastify
    post(path: string, route: Route): Fastify
    listen(options: { port: number; host: string }): Promise<string>
  }
  export function fastify(): Fastify
}

declare module 'hono' {
  interface Context {
    readonly req: { param(name: string): string; json(): Promise<unknown> }
    text(text: string): Response
    body(stream: ReadableStream<Uint8Array>): Response
    json(value: unknown): Response
  }
  export class Hono {
    get(path: string, handler: (context: Context) => Response | Promise<Response>): Hono
    post(path: string, handler: (context: Context) => Response | Promise<Response>): Hono
    use(path: string, middleware: unknown): Hono
    readonly fetch: (request: Request) => Response | Promise<Response>
  }
}

declare module '@hono/node-server/serve-static' {
  export function serveStatic(options: { root: string }): unknown
}

declare module '@hono/node-server' {
  export function serve(options: {
    fetch: (request: Request) => Response | Promise<Response>
    port: number
    hostname: string
  }): unknown
}

declare module 'effect/Effect' {
  interface Running<A> {
    [Symbol.iterator](): Iterator<unknown, A, unknown>
  }
  export function sync<A>(thunk: () => A): Running<A>
  export function gen<A>(body: () => Generator<unknown, A, never>): Running<A>
  export function runFork(effect: unknown): unknown
}

declare module 'effect/Layer' {
  export interface Layer {
    readonly layer: true
  }
  export function mergeAll(...layers: readonly Layer[]): Layer
  export function provide(layer: Layer, dependency: Layer): Layer
  export function launch(layer: Layer): unknown
}

declare module 'effect/http/HttpRouter' {
  import type { Layer } from 'effect/Layer'
  export const params: { [Symbol.iterator](): Iterator<unknown, Readonly<Record<string, string>>, unknown> }
  export function add(method: string, path: string, handler: unknown): Layer
  export function serve(routes: Layer, options: object): Layer
  export function toWebHandler(
    routes: Layer,
    options: object,
  ): { readonly handler: (request: Request) => Promise<Response> }
}

declare module 'effect/http/HttpServerRequest' {
  export const HttpServerRequest: {
    [Symbol.iterator](): Iterator<
      unknown,
      { readonly json: { [Symbol.iterator](): Iterator<unknown, unknown, unknown> } },
      unknown
    >
  }
}

declare module 'effect/http/HttpServerResponse' {
  export function text(body: string): object
  export function jsonUnsafe(body: unknown): object
}

declare module '@effect/platform-node' {
  import type { Layer } from 'effect/Layer'
  export const NodeHttpServer: {
    layer(server: () => unknown, options: { readonly host: string; readonly port: number }): Layer
  }
}
