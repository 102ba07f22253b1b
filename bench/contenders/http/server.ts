/**
 * One server of the http table, in a process of its own: `server.js <name> <port> [<certificate> <key>]`.
 *
 * It prints nothing and serves until it is ended.
 */
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { createReadStream, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { FOLDER, generated, HELLO, streamed, userOf, work } from './responses.ts'

const host = '127.0.0.1'
const [name, port, cert, key] = [process.argv[2], Number(process.argv[3]), process.argv[4], process.argv[5]]

const SERVERS: Readonly<Record<string, () => unknown>> = {
  corespun: () => corespun(),
  'corespun with TLS': () => corespun({ tls: { cert, key } }),
  // One server has both versions.
  'corespun over HTTP/2': () => corespun(),
  'corespun, again': () => corespun(),
  'corespun, observed': corespunObserved,
  'corespun, one worker': () => corespunInZone(1),
  'corespun, two workers': () => corespunInZone(2),
  'node:http': () => http.createServer(onNode).listen(port, host),
  'node:https': () =>
    https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, onNode).listen(port, host),
  'node:http2': () => http2.createServer().on('stream', onStream).listen(port, host),
  fastify,
  'hono on corespun': honoOnCorespun,
  'hono on node:http': honoOnNode,
  'express on corespun': expressOnCorespun,
  'express on node:http': expressOnNode,
  'effect on corespun': effectOnCorespun,
  'effect on node:http': effectOnNode,
  'uWebSockets.js': uWebSockets,
}

await SERVERS[name]()

async function corespun(more: { tls?: { cert: string; key: string } } = {}): Promise<void> {
  const [{ serve }, { routes }] = await Promise.all([import('corespun/http'), import('./app.js')])
  await serve({ quiet: true, core: 'native', host, port, routes, ...more })
}

async function corespunObserved(): Promise<void> {
  const [{ startMetrics }, { observe }] = await Promise.all([
    import('corespun/metrics'),
    import('corespun/observe'),
  ])
  startMetrics()
  await observe()
  await corespun()
}

async function corespunInZone(workers: number): Promise<void> {
  const [{ serve }, { zone }] = await Promise.all([import('corespun/http'), import('corespun/zone')])
  const app = new URL('./app.js', import.meta.url)
  await serve({ quiet: true, zone: zone.create('http', { workers }), app, core: 'native', host, port })
}

async function honoOnCorespun(): Promise<void> {
  const [{ serve }, { honoApp }] = await Promise.all([import('corespun/http'), import('./hono.js')])
  await serve({ quiet: true, core: 'native', host, port, fetch: honoApp().fetch })
}

async function honoOnNode(): Promise<void> {
  const [{ serve }, { serveStatic }, { honoApp }] = await Promise.all([
    import('@hono/node-server'),
    import('@hono/node-server/serve-static'),
    import('./hono.js'),
  ])
  const app = honoApp()
  app.use('/file.txt', serveStatic({ root: relative(process.cwd(), FOLDER) }))
  serve({ fetch: app.fetch, hostname: host, port })
}

async function expressOnCorespun(): Promise<void> {
  const [{ nodeHandler, serve }, { expressApp }] = await Promise.all([
    import('corespun/http'),
    import('./express.js'),
  ])
  await serve({ quiet: true, core: 'native', host, port, fetch: nodeHandler(expressApp()) })
}

async function expressOnNode(): Promise<void> {
  const { expressApp } = await import('./express.js')
  http.createServer(expressApp()).listen(port, host)
}

async function effectOnCorespun(): Promise<void> {
  const [{ serve }, { effectHandler }] = await Promise.all([import('corespun/http'), import('./effect.js')])
  await serve({ quiet: true, host, port, fetch: effectHandler() })
}

async function effectOnNode(): Promise<void> {
  const { serveEffect } = await import('./effect.js')
  serveEffect(host, port)
}

interface UwsResponse {
  writeHeader(name: string, value: string): UwsResponse
  end(body: string): void
}
interface UwsApp {
  get(
    path: string,
    handler: (response: UwsResponse, request: { getParameter(at: number): string }) => void,
  ): UwsApp
  listen(host: string, port: number, done: () => void): void
}

/** The routes of table tails. */
async function uWebSockets(): Promise<void> {
  const entry = pathToFileURL(join(process.env['CORESPUN_BENCH_UWS']!, 'uws.js')).href
  const { default: uws } = (await import(entry)) as { default: { App(): UwsApp } }
  uws
    .App()
    .get('/', (response) => {
      response.writeHeader('content-type', 'text/plain;charset=UTF-8').end(HELLO)
    })
    .get('/user/:id', (response, request) => {
      const body = JSON.stringify(userOf(request.getParameter(0)))
      response.writeHeader('content-type', 'application/json').end(body)
    })
    .listen(host, port, () => {})
}

async function fastify(): Promise<void> {
  const app = (await import('fastify')).fastify()
  app.get('/', () => HELLO)
  app.get('/user/:id', ({ params }) => userOf(params.id))
  app.post('/echo', ({ body }) => body)
  app.get('/constant', () => HELLO)
  app.get('/work', () => work())
  app.get('/file.txt', (_request, reply) => reply.send(createReadStream(`${FOLDER}/file.txt`)))
  app.get('/generated', (_request, reply) => reply.send(Readable.from(generated())))
  app.get('/streamed', (_request, reply) => reply.send(streamed()))
  await app.listen({ port, host })
}

/** By its own interface, which costs less than the one that it shares with HTTP/1.1. */
function onStream(stream: http2.ServerHttp2Stream): void {
  stream.respond({
    ':status': 200,
    'content-type': 'text/plain;charset=UTF-8',
    'content-length': HELLO.length,
  })
  stream.end(HELLO)
}

function onNode(request: http.IncomingMessage, response: http.ServerResponse): void {
  const url = request.url!
  if (url === '/' || url === '/constant') text(response, HELLO)
  else if (url === '/work') text(response, work())
  else if (url === '/file.txt') void file(response)
  else if (url === '/generated') void Readable.from(generated()).pipe(response)
  else if (url === '/streamed') void Readable.fromWeb(streamed()).pipe(response)
  else if (url.startsWith('/user/')) json(response, userOf(url.slice(6)))
  else {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => json(response, JSON.parse(Buffer.concat(chunks).toString())))
  }
}

async function file(response: http.ServerResponse): Promise<void> {
  const path = `${FOLDER}/file.txt`
  const { size } = await stat(path)
  response.writeHead(200, { 'content-type': 'text/plain;charset=UTF-8', 'content-length': size })
  createReadStream(path).pipe(response)
}

function text(response: http.ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'text/plain;charset=UTF-8', 'content-length': body.length })
  response.end(body)
}

function json(response: http.ServerResponse, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
