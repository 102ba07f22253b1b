/**
 * The competitors and the harness, so that the bench type-checks before they are installed.
 *
 * Those whose calls are checked by their answers alone have no types here; the parts of the others that the
 * bench calls are declared, since their callbacks need types.
 */
declare module 'mitata'
declare module 'piscina'
declare module 'tinypool'
declare module 'workerpool'
declare module 'poolifier'
declare module 'multithreading'
declare module 'synckit'
declare module 'msgpackr'
declare module 'cbor-x'
declare module 'lmdb'
declare module 'bullmq'
declare module 'pg-boss'
declare module 'graphile-worker'
declare module '@dbos-inc/dbos-sdk'
declare module 'fp-ts'
declare module '@hono/node-server/serve-static'
declare module '@hono/node-server'

declare module 'effect/Context'
declare module 'effect/ManagedRuntime'
declare module 'effect/Schema'
declare module 'effect/rpc'

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
  export const Stream: {
    fromAsyncIterable<A>(items: AsyncIterable<A>, onError: (error: unknown) => unknown): { readonly of: A }
    map<A, B>(stream: { readonly of: A }, fn: (value: A) => B): { readonly of: B }
    runFold<A, Z>(stream: { readonly of: A }, initial: () => Z, fn: (sum: Z, value: A) => Z): Step
  }
}

declare module 'pg' {
  export class Pool {
    constructor(options: { connectionString: string })
    query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[] }>
  }
  const pg: { readonly Pool: typeof Pool }
  export default pg
}

declare module 'sharedmap' {
  export default class SharedMap {
    constructor(maxSize: number, keySize: number, objectSize: number)
    set(key: string, value: string | number): void
    get(key: string): string | undefined
  }
}

declare module 'express' {
  interface Request {
    readonly params: { readonly id: string } & Readonly<Record<string, string>>
    readonly query: unknown
    readonly body: unknown
  }
  interface Response {
    type(name: string): Response
    json(value: unknown): Response
    send(body: string): Response
  }
  type Listener = (request: Request, response: Response, next: () => void) => unknown
  interface App {
    (request: unknown, response: unknown): void
    get(path: string, handler: Listener): App
    post(path: string, ...handlers: Listener[]): App
  }
  function express(): App
  namespace express {
    function json(): Listener
    type Express = App
  }
  export default express
}

declare module 'fastify' {
  interface FastifyRequest {
    readonly params: { readonly id: string } & Readonly<Record<string, string>>
    readonly query: unknown
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
    post(path: string, options: { readonly schema: object }, route: Route): Fastify
    listen(options: { port: number; host: string }): Promise<string>
  }
  export function fastify(): Fastify
}

declare module 'elysia' {
  export const t: Readonly<
    Record<'Array' | 'Boolean' | 'Integer' | 'Number' | 'Numeric' | 'Object' | 'Optional' | 'String', Build>
  > & { Union(of: readonly unknown[]): unknown; Literal(value: string): unknown }
  interface Build {
    (of?: unknown, options?: object): unknown
  }
  interface Context {
    readonly params: { readonly shop: string } & Readonly<Record<string, string>>
    readonly query: { readonly source: string; readonly limit: number }
    readonly body: object
  }
  export class Elysia {
    get(path: string, handler: (context: Context) => unknown): Elysia
    post(path: string, handler: (context: Context) => unknown, schemas: object): Elysia
    listen(options: { port: number; hostname: string }): Elysia
  }
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

declare module 'effect/Effect' {
  interface Running<A> {
    [Symbol.iterator](): Iterator<unknown, A, unknown>
  }
  export function sync<A>(thunk: () => A): Running<A>
  export function gen<A>(body: () => Generator<unknown, A, never>): Running<A>
  export function runFork(effect: unknown): unknown
  export function runPromise(effect: unknown): Promise<unknown>
}

declare module 'effect/Layer' {
  export interface Layer {
    readonly layer: true
  }
  export function mergeAll(...layers: readonly Layer[]): Layer
  export function provide(layer: Layer, dependency: Layer): Layer
  export function launch(layer: Layer): unknown
  export function effect(key: unknown, effect: unknown): Layer
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
  export const NodeRuntime: { runMain(effect: unknown): void }
  export const NodeWorker: { layer(spawn: () => unknown): Layer }
  export const NodeWorkerRunner: { readonly layer: Layer }
  export const NodeHttpServer: {
    layer(server: () => unknown, options: { readonly host: string; readonly port: number }): Layer
  }
}

declare module 'ws' {
  interface Socket {
    on(event: 'message', listener: (message: Uint8Array, isBinary: boolean) => void): void
    on(event: 'close', listener: () => void): void
    send(message: Uint8Array, options: { binary: boolean }): void
  }
  export class WebSocketServer {
    constructor(options: { server: unknown })
    on(event: 'connection', listener: (socket: Socket, request: { url?: string }) => void): void
  }
}
