/**
 * Deno's server, for the http table: `deno.js <deno | hono on deno> <port>`, run by Deno itself.
 *
 * A bare handler over the path, as its documentation recommends where speed matters; it has no constants.
 */
import { HELLO, userOf, work } from './responses.ts'

declare const Deno: {
  serve(
    options: Record<string, unknown>,
    handler: (request: Request) => Response | Promise<Response>,
  ): unknown
}

const [name, port] = process.argv.slice(-2) as [string, string]
const address = { port: Number(port), hostname: '127.0.0.1', onListen: () => {} }

if (name === 'hono on deno') {
  const { honoApp } = await import('./hono.js')
  const app = honoApp()
  Deno.serve(address, (request) => app.fetch(request))
} else Deno.serve(address, respond)

function respond(request: Request): Response | Promise<Response> {
  const { url } = request
  const path = url.slice(url.indexOf('/', 8))
  if (path === '/' || path === '/constant') return new Response(HELLO)
  if (path === '/work') return new Response(work())
  if (path.startsWith('/user/')) return Response.json(userOf(path.slice(6)))
  if (path === '/echo') return request.json().then((value: unknown) => Response.json(value))
  return new Response('Not Found', { status: 404 })
}
