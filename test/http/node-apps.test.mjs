/**
 * Apps of express, koa, connect and fastify, as their users write them: what a client sees through
 * `nodeHandler` is what it sees on node:http, which is the oracle. Then `corespun serve` runs those that
 * stream, on the native core. These packages ship no tests of their own that could run here.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import connect from 'connect'
import { nodeHandler, serve } from 'corespun/http'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { start, until } from '../cli/corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-node-apps-'))
after(() => rmSync(folder, { recursive: true }))
const FILE = join(folder, 'page.html')
writeFileSync(FILE, '<p>page</p>'.repeat(20_000))

/** What a core writes, or where a server shows its port. */
const IGNORED = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length'])

async function seen(url, { path, ...init }) {
  const response = await fetch(url + path, { redirect: 'manual', ...init }).catch(() => undefined)
  if (response === undefined) return 'the connection was closed'
  const headers = [...response.headers].filter(([name]) => !IGNORED.has(name))
  return {
    status: response.status,
    headers,
    body: (await response.text()).replaceAll(/:\d{4,5}\b/g, ':port'),
  }
}

/** @param listener As node:http takes it. @param app As `nodeHandler` takes it. */
function check(name, make, asked) {
  for (const core of ['native', 'node'])
    test(`${name} (${core})`, { skip: core === 'native' && process.platform === 'win32' }, async () => {
      const [own, adapted] = [await make(), await make()]
      const oracle = http.createServer(own.listener ?? own.app)
      await once(oracle.listen(0, '127.0.0.1'), 'listening')
      const server = await serve({ quiet: true, port: 0, core, fetch: nodeHandler(adapted.app) })
      try {
        for (const ask of asked) {
          const expected = await seen(`http://127.0.0.1:${oracle.address().port}`, ask)
          assert.deepEqual(await seen(server.url, ask), expected, ask.path)
        }
        assert.equal(server.stats().errors, 0)
      } finally {
        await server.close()
        oracle.close()
        oracle.closeAllConnections()
        for (const { end } of [own, adapted]) await end?.()
      }
    })
}

const json = (value) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

function expressApp() {
  const app = express().set('trust proxy', true)
  app.use('/body', express.json(), express.urlencoded({ extended: false }))
  app.get('/', (_, res) => res.send('express'))
  app.get('/user/:id', (req, res) => res.json({ id: req.params.id, q: req.query.q, host: req.hostname }))
  app.get('/facts', (req, res) =>
    res.json([req.ip, req.ips, req.protocol, req.secure, req.xhr, req.originalUrl]),
  )
  app.post('/body', (req, res) => res.status(201).json(req.body))
  app.get('/cookies', (_, res) => res.cookie('a', '1').cookie('b', '2', { httpOnly: true }).sendStatus(204))
  app.get('/redirect', (_, res) => res.redirect(301, '/elsewhere'))
  app.get('/file', (_, res) => res.sendFile(FILE))
  app.get('/download', (_, res) => res.download(FILE, 'h\xe9.html'))
  app.use('/static', express.static(folder))
  app.get('/throws', () => {
    throw Object.assign(new Error('teapot'), { status: 418 })
  })
  app.get('/rejects', async () => {
    throw Object.assign(new Error('left'), { status: 410 })
  })
  app.get('/pieces', async (_, res) => {
    for (const piece of ['a', 'b', 'c']) {
      res.write(piece)
      await new Promise(setImmediate)
    }
    res.end()
  })
  app.use(
    '/nested',
    express.Router().get('/:x', (req, res) => res.send(`${req.baseUrl} ${req.url}`)),
  )
  app.get('/formats', (_, res) => res.format({ html: () => res.send('<p>'), json: () => res.send({}) }))
  app.use((error, _req, res, next) =>
    res.headersSent ? next(error) : res.status(error.status).send(error.message),
  )
  return { app }
}

check('an express app', expressApp, [
  { path: '/' },
  { path: '/', method: 'HEAD' },
  { path: '/user/7?q=a%20b' },
  { path: '/user/h%C3%A9' },
  { path: '/facts', headers: { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' } },
  { path: '/body', ...json({ a: [1, 2] }) },
  { path: '/body', method: 'POST', body: new URLSearchParams({ a: 'b c' }) },
  { path: '/body', ...json('x'.repeat(200_000)) },
  { path: '/body', method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' },
  { path: '/cookies' },
  { path: '/redirect' },
  { path: '/file' },
  { path: '/file', method: 'HEAD' },
  { path: '/file', headers: { range: 'bytes=5-9' } },
  { path: '/download' },
  { path: '/static/page.html' },
  { path: '/static/none' },
  { path: '/static/%2e%2e/x' },
  { path: '/throws' },
  { path: '/rejects' },
  { path: '/pieces' },
  { path: '/nested/y?z' },
  { path: '/formats', headers: { accept: 'application/json' } },
  { path: '/nowhere' },
  { path: '/', method: 'OPTIONS' },
])

function koaApp() {
  const app = new Koa()
  app.silent = true
  app.use(async (ctx, next) => {
    await next()
    ctx.set('x-after', ctx.status.toString())
  })
  app.use(async (ctx) => {
    if (ctx.path === '/json') ctx.body = { ip: ctx.ip, q: ctx.query, writable: ctx.writable }
    else if (ctx.path === '/stream') ctx.body = createReadStream(FILE)
    else if (ctx.path === '/readable') ctx.body = Readable.from(['a', 'b'])
    else if (ctx.path === '/missing') ctx.body = createReadStream(join(folder, 'none'))
    else if (ctx.path === '/cookies') ctx.cookies.set('a', '1')
    else if (ctx.path === '/throws') ctx.throw(409, 'conflict')
    else if (ctx.path === '/empty') ctx.status = 204
    else if (ctx.path === '/raw') {
      ctx.respond = false
      ctx.res.end('raw')
    } else if (ctx.path === '/echo') ctx.body = ctx.req
    else if (ctx.path === '/') ctx.body = 'koa'
  })
  return { app, listener: app.callback() }
}

check('a koa app', koaApp, [
  { path: '/' },
  { path: '/', method: 'HEAD' },
  { path: '/json?a=1' },
  { path: '/stream' },
  { path: '/readable' },
  { path: '/missing' },
  { path: '/cookies' },
  { path: '/throws' },
  { path: '/empty' },
  { path: '/raw' },
  { path: '/echo', method: 'POST', body: 'y'.repeat(300_000) },
  { path: '/nowhere' },
])

function connectApp() {
  const app = connect()
  app.use((req, res, next) => {
    res.setHeader('x-first', req.url)
    next()
  })
  app.use('/mounted', (req, res) => res.end(`${req.url} ${req.originalUrl}`))
  app.use('/throws', () => {
    throw Object.assign(new Error('no'), { status: 402 })
  })
  app.use((_req, res, next) =>
    res.headersSent ? next() : next(Object.assign(new Error('late'), { status: 409 })),
  )
  app.use((error, _req, res, _next) => res.writeHead(error.status, { 'x-error': '1' }).end(error.message))
  return { app }
}

check('a connect app', connectApp, [{ path: '/mounted/x?y' }, { path: '/throws' }, { path: '/other' }])

async function fastifyApp() {
  const app = fastify()
  app.get('/', () => 'fastify')
  app.get('/user/:id', async (request) => ({ id: request.params.id, ip: request.ip, host: request.host }))
  app.post('/body', async (request, reply) => reply.code(201).send(request.body))
  app.get('/stream', (_request, reply) => reply.type('text/html').send(createReadStream(FILE)))
  app.get('/throws', async () => {
    throw Object.assign(new Error('teapot'), { statusCode: 418 })
  })
  await app.ready()
  return { app, listener: (req, res) => app.routing(req, res), end: () => app.close() }
}

check('a fastify app', fastifyApp, [
  { path: '/' },
  { path: '/', method: 'HEAD' },
  { path: '/user/7' },
  { path: '/body', ...json({ a: 1 }) },
  { path: '/body', method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' },
  { path: '/stream' },
  { path: '/throws' },
  { path: '/nowhere' },
])

const RAW = `const raw = (req, res) => {
  if (req.url === '/trailers') {
    res.writeHead(200, { trailer: 'x-sum' }).write('a')
    res.addTrailers({ 'x-sum': '7' })
    res.end('b')
  } else if (req.url === '/open') {
    res.on('close', () => process.stderr.write('left ' + res.writableFinished + '\\n'))
    res.write('begun')
  } else res.writeHead(200).end(req.method + ' ' + req.headers.upgrade)
}`
/** Each as a program for `corespun serve`; what the framework has for streams is at /echo. */
const SERVED = {
  express: `const app = library().post('/echo', (req, res) => void req.pipe(res)).use(raw)`,
  koa: `const app = new library().use((ctx) => {
    if (ctx.path === '/echo') ctx.body = ctx.req
    else raw(ctx.req, ctx.res, ctx.respond = false)
  })`,
  connect: `const app = library().use('/echo', (req, res) => void req.pipe(res)).use(raw)`,
}

for (const [library, text] of Object.entries(SERVED))
  test(`corespun serve streams, aborts and sends trailers for ${library}`, { timeout: 60_000 }, async () => {
    const file = join(folder, `${library}.mjs`)
    const from = JSON.stringify(import.meta.resolve(library))
    writeFileSync(file, `import library from ${from}\n${RAW}\n${text}\nexport default app`)
    const started = start(['serve', file, '--port', '0', '--workers', '2'])
    const { child } = started
    const agent = new http.Agent()
    try {
      await until(child.stdout, () => started.out.includes('\n'))
      const { port } = new URL(/http:\S+/.exec(started.out)[0])
      const ask = (path, init) => http.request({ host: '127.0.0.1', port, path, agent, ...init })
      const responseOf = async (request) => (await once(request, 'response'))[0].setEncoding('utf8')

      const sent = ask('/echo', { method: 'POST' })
      sent.write('one')
      const echoed = await responseOf(sent)
      for (const piece of ['one', 'two']) {
        assert.deepEqual(await once(echoed, 'data'), [piece]) // before the next one is sent
        if (piece === 'one') sent.write('two')
      }
      sent.end()
      await once(echoed.resume(), 'end')

      const summed = await responseOf(ask('/trailers', { headers: { te: 'trailers' } }).end())
      assert.equal((await summed.toArray()).join(''), 'ab')
      assert.deepEqual(summed.trailers, { 'x-sum': '7' })

      const open = ask('/open').end()
      assert.deepEqual(await once(await responseOf(open), 'data'), ['begun'])
      open.on('error', () => {}).destroy()
      await until(child.stderr, () => started.err.includes('left false\n'))

      // Where nothing listens for 'upgrade', node:http passes such a request to the app, too.
      const upgrade = ask('/', { headers: { connection: 'upgrade', upgrade: 'websocket' } }).end()
      const plain = await responseOf(upgrade)
      assert.equal(plain.statusCode, 200)
      assert.equal((await plain.toArray()).join(''), 'GET websocket')
    } finally {
      agent.destroy()
      child.kill('SIGTERM')
      await started.ended
    }
  })
