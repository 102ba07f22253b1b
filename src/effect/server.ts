/**
 * The server as a scoped Effect, and handlers that are Effects.
 *
 * A handler runs with the services that were there when it was made, under the client's span, and is
 * interrupted when the client disconnects. How its failures are sent is decided where those of other handlers
 * are: by `onError` and `jsonErrors`.
 */
import * as Cause from 'effect/Cause'
import * as Effect from 'effect/Effect'
import type { Scope } from 'effect/Scope'
import {
  type Handler,
  type HttpCodes,
  type HttpRequest,
  type HttpServer,
  type ResponseValue,
  type ServeOptions,
  type ZoneServeOptions,
  type ZoneServer,
  serve,
} from '../http/index.ts'
import { currentTrace } from '../zone/index.ts'
import { contextOf } from './carried.ts'
import { type Failures, awaiting, failed } from './errors.ts'

/**
 * A server that listens as long as its scope: `Layer.effectDiscard(makeServer({ routes }))`. Leaving the
 * scope stops it as `close()` does: requests in flight end first.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Effect } from 'effect'
 * import { handler, makeServer } from 'corespun/effect'
 *
 * const program = Effect.gen(function* () {
 *   const hello = yield* handler(() => Effect.succeed({ hello: 'world' }))
 *   const server = yield* makeServer({ port: 0, routes: { '/': hello } })
 *   return yield* Effect.promise(async () => (await fetch(server.url)).json())
 * })
 * assert.deepEqual(await Effect.runPromise(Effect.scoped(program)), { hello: 'world' })
 * ```
 */
export function makeServer(options: ZoneServeOptions): Effect.Effect<ZoneServer, Failures<HttpCodes>, Scope>
/** A server in this thread: see the first overload. */
export function makeServer<Pattern extends string>(
  options: ServeOptions<Pattern>,
): Effect.Effect<HttpServer, Failures<HttpCodes>, Scope>
export function makeServer(
  options: ServeOptions | ZoneServeOptions,
): Effect.Effect<HttpServer | ZoneServer, Failures<HttpCodes>, Scope> {
  return Effect.acquireRelease(
    awaiting(() => serve(options as ServeOptions), failed<HttpCodes>),
    (server) => Effect.promise(() => server.close()),
  )
}

/**
 * A handler for `routes` from a function that returns an Effect; it keeps the services of the Effect that
 * makes it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Context, Effect } from 'effect'
 * import { createApp } from 'corespun/http'
 * import { handler } from 'corespun/effect'
 *
 * const Version = Context.Reference<number>('app/Version', { defaultValue: () => 1 })
 * const version = handler(() => Effect.map(Version, (number) => ({ number })))
 * const routes = { '/': await Effect.runPromise(Effect.provideService(version, Version, 2)) }
 * assert.deepEqual(await (await createApp({ routes }).inject('/')).json(), { number: 2 })
 * ```
 */
export function handler<Pattern extends string, A extends ResponseValue, E, R>(
  fn: (request: HttpRequest<Pattern>) => Effect.Effect<A, E, R>,
): Effect.Effect<Handler<Pattern>, never, R> {
  return Effect.contextWith((context) =>
    Effect.succeed(async (request: HttpRequest<Pattern>) => {
      const trace = currentTrace() ?? { traceparent: request.headers.get('traceparent') ?? '' }
      const run = Effect.runPromiseExitWith(contextOf(undefined, trace, context as never))
      const exit = await run(Effect.suspend(() => fn(request)) as Effect.Effect<A, E>, {
        signal: request.signal,
      })
      if (exit._tag === 'Success') return exit.value
      const isLeft = request.signal.aborted && Cause.hasInterruptsOnly(exit.cause)
      throw isLeft ? request.signal.reason : Cause.squash(exit.cause)
    }),
  )
}
