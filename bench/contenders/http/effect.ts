/**
 * The same Effect app for every server that runs one: on Effect's own HttpServer, or as a web handler.
 *
 * Made as Effect's own documentation makes it; its request logger is off, as the other servers log nothing.
 */
import { createServer } from 'node:http'
import { NodeHttpServer } from '@effect/platform-node'
import * as Effect from 'effect/Effect'
import * as Layer from 'effect/Layer'
import * as HttpRouter from 'effect/http/HttpRouter'
import * as HttpServerRequest from 'effect/http/HttpServerRequest'
import * as HttpServerResponse from 'effect/http/HttpServerResponse'
import { HELLO, userOf, work } from './responses.ts'

const ROUTES = Layer.mergeAll(
  HttpRouter.add('GET', '/', HttpServerResponse.text(HELLO)),
  HttpRouter.add(
    'GET',
    '/user/:id',
    Effect.gen(function* () {
      const { id } = yield* HttpRouter.params
      return HttpServerResponse.jsonUnsafe(userOf(id))
    }),
  ),
  HttpRouter.add(
    'POST',
    '/echo',
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      return HttpServerResponse.jsonUnsafe(yield* request.json)
    }),
  ),
  HttpRouter.add('GET', '/constant', HttpServerResponse.text(HELLO)),
  HttpRouter.add(
    'GET',
    '/work',
    Effect.sync(() => HttpServerResponse.text(work())),
  ),
)

/** The app as a web-standard handler. */
export function effectHandler(): (request: Request) => Promise<Response> {
  return HttpRouter.toWebHandler(ROUTES, { disableLogger: true }).handler
}

/** The app on Effect's HttpServer on node:http; ends with the process. */
export function serveEffect(host: string, port: number): void {
  const server = NodeHttpServer.layer(createServer, { host, port })
  const app = HttpRouter.serve(ROUTES, { disableLogger: true, disableListenLog: true })
  Effect.runFork(Layer.launch(Layer.provide(app, server)))
}
