/**
 * `nodeHandler`: an app for the `(req, res)` of node:http as a handler.
 *
 * What runs such apps is loaded on demand, so that a program without one loads neither node:http nor the
 * adapter.
 */
import { exchangeOf, OWN_REQUEST } from '../fetch/request.ts'
import type { Exchange } from '../message/core-interface.ts'
import { wrong } from '../message/limits.ts'
import { type NodeApp, has, isKoa, isNest } from './node-app.ts'
import type { Listener } from './node-exchange.ts'

type Run = (exchange: Exchange) => Response | Promise<Response>

const handlers = new WeakSet<object>()

/**
 * Makes a handler of an app for the `(req, res)` of node:http, such as one of express, koa, connect, Nest,
 * Next.js or fastify: a route, or the `fetch` of an app. It runs on either core; what it sends is a Response,
 * so middleware around it works.
 *
 * `req` and `res` are node:http's own classes without its server. Their socket has the facts of the
 * connection and can be destroyed; it cannot be written to, so WebSockets are routes beside the app.
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
  const listener = listenerOf(app)
  let run: Run | undefined
  const loading = loaded(listener).then((made) => (run = made))
  loading.catch(() => {}) // each request rejects with it
  const handler = (request: Request): Response | Promise<Response> => {
    const exchange = exchangeOf(request)
    if (exchange === undefined) throw wrong('nodeHandler(): request', OWN_REQUEST, request)
    return run === undefined ? loading.then((made) => made(exchange)) : run(exchange)
  }
  handlers.add(handler)
  return handler
}

async function loaded(listener: Listener | Promise<Listener>): Promise<Run> {
  const [listen, { respondedBy }] = await Promise.all([listener, import('./node-exchange.ts')])
  return (exchange) => respondedBy(listen, exchange)
}

/** Whether a function is one that `nodeHandler` has made. */
export function isNodeHandler(value: unknown): boolean {
  return typeof value === 'function' && handlers.has(value)
}

/**
 * The function `(req, res)` of an app; a promise of it where the app begins first.
 * @throws {HttpError} `HTTP_ARGUMENT` for a value that is not such an app.
 */
export function listenerOf(app: unknown): Listener | Promise<Listener> {
  if (typeof app === 'function') return app as Listener
  if (typeof app === 'object' && app !== null) {
    if (isKoa(app)) return app.callback()
    if (isNest(app))
      return Promise.resolve(app.init()).then(() => listenerOf(app.getHttpAdapter().getInstance()))
    if (has(app, 'ready') && has(app, 'routing')) {
      const { ready, routing } = app as unknown as { ready(): PromiseLike<unknown>; routing: Listener }
      return Promise.resolve(ready.call(app)).then(() => routing.bind(app))
    }
  }
  throw wrong('nodeHandler(): app', 'a function (req, res), or an app of koa, fastify or Nest', app)
}
