/**
 * The server behind nginx, by the configuration of docs/guide/deployment.md: the client's address, streams,
 * uploads and compression.
 *
 * The configuration is taken from the guide; only addresses, the certificate and the folders of nginx are
 * replaced. Without nginx (Debian's nginx-light) the tests are skipped.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { compress, events, serve, use } from 'corespun/http'
import { inRoot } from '../../scripts/set-up/index.mjs'

const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`
const isThere = spawnSync('nginx', ['-v'], { env: { PATH } }).status === 0
const skip = isThere ? false : 'nginx is not installed'
/** How often nginx is started: another program may take the port that was free a moment before. */
const STARTS_MAX = 5
const START_MS_MAX = 60_000

const folder = mkdtempSync(join(tmpdir(), 'corespun-nginx-'))
const go = new EventEmitter()
let app
let proxy
let port = 0

before(async () => {
  if (!isThere) return
  async function* ticks() {
    yield 'first'
    await once(go, 'go')
    yield 'second'
  }
  const routes = {
    '/client': ({ url, ip }) => ({ url, ip }),
    '/large': () => Array.from({ length: 1000 }, (_, id) => ({ id })),
    '/events': () => events(ticks),
    '/upload': { POST: async (request) => String((await request.arrayBuffer()).byteLength) },
  }
  const compressed = use({ '/compressed': routes['/large'] }, compress({ codings: ['br'] }))
  app = await serve({ port: 0, quiet: true, trustProxy: 1, routes: { ...routes, ...compressed } })
  for (let tries = 1; proxy === undefined; tries += 1) {
    proxy = await started(app.port)
    assert.ok(proxy !== undefined || tries < STARTS_MAX, 'nginx did not start')
  }
})

after(async () => {
  if (proxy !== undefined) {
    proxy.kill('SIGTERM')
    if (proxy.exitCode === null && proxy.signalCode === null) await once(proxy, 'exit')
  }
  await app?.close({ timeoutMs: 0 })
  rmSync(folder, { recursive: true })
})

/** Starts nginx in front of a port; `undefined`: it ended, as it does if its own port is taken. */
async function started(appPort) {
  port = await freePort()
  const path = join(folder, 'nginx.conf')
  writeFileSync(path, configuration(appPort, port))
  const child = spawn('nginx', ['-p', folder, '-c', path], {
    env: { PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const late = Date.now() + START_MS_MAX
  while (child.exitCode === null && Date.now() < late) {
    if (await connects(port)) return child
    await sleep(20)
  }
  child.kill()
  console.log(errors)
  return undefined
}

/** The block of the guide inside of what a whole configuration has. */
function configuration(appPort, ownPort) {
  const guide = readFileSync(inRoot('docs', 'guide', 'deployment.md'), 'utf8')
  const [, block] = /```nginx\n(upstream app[^]*?)```/.exec(guide)
  const servers = block
    .replace('127.0.0.1:8080', `127.0.0.1:${appPort}`)
    .replace('listen 443 ssl http2;', `listen 127.0.0.1:${ownPort};`)
    .replace(/^ *ssl_certificate.*\n/gm, '')
  assert.doesNotMatch(servers, /8080|443|ssl/)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(folder, name)};`)
    .join('\n')
  return `daemon off;
master_process off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events {}
http {
  access_log off;
${temporary}
${servers}}
`
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: free } = server.address()
  server.close()
  await once(server, 'close')
  return free
}

function connects(to) {
  return new Promise((resolve) => {
    const socket = net.connect(to, '127.0.0.1')
    socket.once('connect', () => (socket.destroy(), resolve(true))).once('error', () => resolve(false))
  })
}

/** A response; its body is read by `textOf`. */
async function ask(path, { headers = {}, method = 'GET', body } = {}) {
  const all = { host: 'app.example', ...headers }
  const request = http.request({ port, host: '127.0.0.1', path, method, headers: all, agent: false })
  request.on('error', () => {}) // the rest of a refused body may not be taken
  request.end(body)
  const [response] = await once(request, 'response')
  return response
}

async function textOf(response) {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece
  return text
}

test('the app sees the client that nginx sees, whatever the client claims', { skip }, async () => {
  for (const headers of [{}, { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'https' }]) {
    const seen = JSON.parse(await textOf(await ask('/client?a=1', { headers })))
    assert.deepEqual(seen, { url: 'http://app.example/client?a=1', ip: '127.0.0.1' })
  }
})

test('an event passes nginx while the stream goes on', { skip }, async () => {
  const response = await ask('/events', { headers: { 'accept-encoding': 'gzip' } })
  let text = ''
  response.setEncoding('utf8').on('data', (piece) => {
    text += piece
    if (text.includes('data: first\n\n')) go.emit('go')
  })
  await once(response, 'end')
  assert.match(text, /data: first\n\n.*data: second\n\n/s)
})

test('nginx compresses what the app does not, and leaves alone what it does', { skip }, async () => {
  const headers = { 'accept-encoding': 'gzip, br' }
  for (const [path, coding] of [
    ['/large', 'gzip'],
    ['/compressed', 'br'],
  ]) {
    const response = await ask(path, { headers })
    response.resume()
    await once(response, 'end')
    assert.equal(response.headers['content-encoding'], coding)
  }
})

test('uploads of up to 16 MiB arrive, larger ones are refused', { skip }, async () => {
  const upload = async (bytes) => {
    const headers = { 'content-length': bytes }
    const response = await ask('/upload', { method: 'POST', headers, body: Buffer.alloc(bytes) })
    return [response.statusCode, await textOf(response)]
  }
  assert.deepEqual(await upload(2 ** 24), [200, `${2 ** 24}`])
  assert.equal((await upload(2 ** 24 + 1))[0], 413)
})
