/**
 * https without a proxy: a certificate for this machine, clients that trust it, and another certificate
 * while the server runs.
 *
 * In production `cert` and `key` are the paths of files, and `watch`, which is on, replaces `setTls`.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import type { TLSSocket } from 'node:tls'
import { developmentTls, serve } from 'corespun/http'

const pair = await developmentTls()
const server = await serve({
  host: '127.0.0.1',
  port: 0,
  tls: { ...pair, minVersion: 'TLSv1.3' },
  routes: { '/': (request) => `Hello over ${new URL(request.url).protocol}` },
})

// Connections are kept; a new one resumes the session of another.
const agent = new https.Agent({ ca: pair.cert, keepAlive: true })
for (let count = 0; count < 3; count += 1) {
  const sent = https.get(server.url, { agent })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const socket = response.socket as TLSSocket
  assert.equal(socket.getProtocol(), 'TLSv1.3')
  assert.equal((await response.toArray()).join(''), 'Hello over https:')
}
agent.destroy()

// A client without TLS gets an error.
const plain = await fetch(server.url.replace('https:', 'http:'))
assert.equal(plain.status, 400)
assert.match(await plain.text(), /this port serves https/)

// What cannot be used changes nothing.
await assert.rejects(server.setTls({ cert: pair.cert, key: 'none.pem' }), { code: 'HTTP_TLS_UNREADABLE' })
await server.setTls(pair)
await server.close()
