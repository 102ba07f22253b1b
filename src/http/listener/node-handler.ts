/**
 * `nodeHandler`: an app for the `(req, res)` of node:http as a handler.
 *
 * What runs such apps is loaded on demand, so that a program without one loads neither node:http nor the
 * adapter.
 */
import { exchangeOf, OWN_REQUEST } from '../fetch/request.ts'
import type { Exchange } from '../message/core-interface.ts'
import { wrong } from '../message/limits.ts'
import { type Nest, type NodeApp, has, isKoa, isNest, isServer } from './node-app.ts'
import type { Listener, Upgrader } from './node-exchange.ts'

/** What an app is run by. */
interface Target {
  readonly listen: Listener
  /** Whose listeners of `upgrade` take connections over. */
  readonly server?: Upgrader | undefined
}

type Run = (exchange: Exchange) => Response | Promise<Response>

const handlers = new WeakSet<object>()

/**
 * Makes a handler of an app for the `(req, res)` of node:http, such as one of express, koa, connect, Nest,
 * Next.js or fastify: a route, or the `fetch` of an app. It runs on either core; what it sends is a Response,
 * so middleware around it works.
 *
 * `req` and `res` are node:http's own classes without its server. Their socket has the facts of the
 * connection and can be destroyed. Of an http.Server, fastify and Nest, listeners of `upgrade` receive
 * requests for WebSockets, so `ws` and socket.io attach to it as ever.
 * @throws {HttpError} `HTTP_ARGUMENT` for a value that is not such an app.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import type { IncomingMessage, ServerResponse } from 'node:http'
 * import { createApp, nodeHandler } from 'corespun/http'
 *
 * const listener = (req: IncomingMessage, res: ServerResponse) => {
 *   res.setHeader('content-type', 'text/plain')
 *   res.end(`${req.method} ${req.url}`)
 * }
 * const app = createApp({ routes: { '/api/*': nodeHandler(listener) } })
 * assert.equal(await (await app.inject('/api/users')).text(), 'GET /api/users')
 * ```
 */
export function nodeHandler(app: NodeApp): (request: Request) => Response | Promise<Response> {
  return handlerOf(targetOf(app))
}

/** The handler of what {@link targetOf} returns. */
export function handlerOf(
  target: Target | Promise<Target>,
): (request: Request) => Response | Promise<Response> {
  let run: Run | undefined
  const loading = loaded(target).then((made) => (run = made))
  loading.catch(() => {}) // each request rejects with it
  const handler = (request: Request): Response | Promise<Response> => {
    const exchange = exchangeOf(request)
    if (exchange === undefined) throw wrong('nodeHandler(): request', OWN_REQUEST, request)
    return run === undefined ? loading.then((made) => made(exchange)) : run(exchange)
  }
  handlers.add(handler)
  return handler
}

async function loaded(target: Target | Promise<Target>): Promise<Run> {
  const [{ listen, server }, { respondedBy, upgradedBy }] = await Promise.all([
    target,
    import('./node-exchange.ts'),
  ])
  if (server === undefined) return (exchange) => respondedBy(listen, exchange)
  return (exchange) => upgradedBy(server, exchange) ?? respondedBy(listen, exchange)
}

/** Whether a function is one that `nodeHandler` has made. */
export function isNodeHandler(value: unknown): boolean {
  return typeof value === 'function' && handlers.has(value)
}

/**
 * What runs an app; a promise of it where the app begins first.
 * @throws {HttpError} `HTTP_ARGUMENT` for a value that is not such an app.
 */
export function targetOf(app: unknown): Target | Promise<Target> {
  if (typeof app === 'function') return { listen: app as Listener }
  if (typeof app === 'object' && app !== null) {
    if (isServer(app)) return { listen: (req, res) => void app.emit('request', req, res), server: app }
    if (isKoa(app)) return { listen: app.callback() }
    if (isNest(app)) return Promise.resolve(app.init()).then(() => targetOfNest(app))
    if (has(app, 'ready') && has(app, 'routing')) {
      const { ready, routing, server } = app as unknown as Fastify
      return Promise.resolve(ready.call(app)).then(() => ({ listen: routing.bind(app), server }))
    }
  }
  throw wrong(
    'nodeHandler(): app',
    'a function (req, res), an http.Server, or an app of koa, fastify or Nest',
    app,
  )
}

interface Fastify {
  ready(): PromiseLike<unknown>
  readonly routing: Listener
  readonly server: Upgrader
}

/** Gateways of WebSockets take requests over, too, as socket.io does. */
async function targetOfNest(app: Nest): Promise<Target> {
  const server = app.getHttpServer?.()
  if (server !== undefined && isServer(server) && server.listenerCount('upgrade') > 0) return targetOf(server)
  return targetOf(app.getHttpAdapter().getInstance())
}
