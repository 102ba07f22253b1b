/**
 * TLS in the workers of a zone.
 *
 * Sessions that any worker resumes, and certificates that all of them replace, also later ones.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { settled } from '../../base/wait.test.support.ts'
import { zone as zones } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import { AUTHORITY, certified, connect, PATIENT, request, SERVER } from './client.test.support.ts'

const APP =
  'data:text/javascript,import { threadId } from "node:worker_threads"; ' +
  'const dies = () => { setImmediate(() => process.exit(1)); return "" }; ' +
  'export const routes = { "/": () => String(threadId), "/dies": dies }'

test('workers share sessions and certificates, also one that replaces another', async () => {
  const zone = zones.create('tls', { workers: 2 })
  const server = await serve({
    zone,
    app: APP,
    port: 0,
    quiet: true,
    limits: PATIENT,
    tls: { cert: Buffer.from(SERVER.cert), key: SERVER.key },
  })
  try {
    assert.match(server.url, /^https:/)
    const socket = await connect(server.port)
    const session = once(socket, 'session')
    socket.resume().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const [ticket] = (await settled(session, 'a session')) as [Buffer]
    socket.destroy()
    const workers = new Set<string>()
    for (let count = 0; workers.size < 2; count += 1) {
      assert.ok(count < 100_000, 'both workers serve')
      const { body, isReused } = await request(server.port, '/', { session: ticket })
      assert.equal(isReused, true)
      workers.add(body)
    }
    const renewed = certified('renewed', ['localhost', 'renewed.example'])
    await server.setTls(renewed)
    await request(server.port, '/dies').catch(() => {})
    for (let count = 0; workers.size < 3; count += 1) {
      assert.ok(count < 100_000, 'a worker replaces another')
      const got = await request(server.port).catch(() => undefined) // one that waited for the dead worker
      if (got === undefined) continue
      assert.match(got.names!, /renewed\.example/)
      workers.add(got.body)
    }
    await server.setTls()
    const sni = () => undefined
    await assert.rejects(server.setTls({ ...SERVER, sni }), { code: 'HTTP_ARGUMENT' })
    await assert.rejects(server.setTls({ ...SERVER, key: AUTHORITY.key }), { code: 'HTTP_TLS_KEY' })
    await assert.rejects(serve({ zone, app: APP, tls: { ...SERVER, sni } }), { code: 'HTTP_ARGUMENT' })
  } finally {
    await server.close()
    await zone.close()
  }
})
