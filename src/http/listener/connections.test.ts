/**
 * What an app for node:http sees of connections with TLS and of HTTP/2.
 *
 * What it sees over HTTP/1.1 is in node-handler.test.ts.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { onCores, onServer } from '../cores.test.support.ts'
import { connect, request as requestOverHttp2 } from '../http2/client.test.support.ts'
import { nodeHandler } from '../index.ts'
import { AUTHORITY, certified, PATIENT, request, SERVER } from '../tls/client.test.support.ts'

onCores('a socket of TLS is encrypted, and shows the certificate of its client', async (start) => {
  const listen = (req: IncomingMessage, res: ServerResponse): void => {
    const { encrypted, authorized, ...socket } = facts(req.socket as TLSSocket)
    res.end(JSON.stringify([encrypted, authorized, socket.subject, socket.x509]))
  }
  const tls = { ...SERVER, ca: AUTHORITY.cert, clients: 'request' as const }
  const server = await start({ limits: PATIENT, tls, fetch: nodeHandler(listen) })
  const { body } = await request(server.port)
  assert.deepEqual(JSON.parse(body), [true, false, null, null])
  const { cert, key } = certified('client')
  const shown = await request(server.port, '/', { cert, key })
  assert.deepEqual(JSON.parse(shown.body), [true, true, 'client', 'CN=client'])
})

function facts(socket: TLSSocket): Record<string, unknown> {
  const { encrypted, authorized } = socket
  const subject = socket.getPeerCertificate().subject?.CN ?? null
  return { encrypted, authorized, subject, x509: socket.getPeerX509Certificate()?.subject ?? null }
}

onServer('over HTTP/2, parsers of bodies find one without a length', async (start) => {
  const listen = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    let body = ''
    for await (const piece of req) body += String(piece)
    const { host, 'transfer-encoding': coding = null } = req.headers
    res
      .setHeader('x-a', ['1', '2'])
      .end(JSON.stringify([req.httpVersion, req.url, typeof host, coding, body]))
  }
  const server = await start({ fetch: nodeHandler(listen) })
  const session = connect(server.port)
  try {
    const posted = await requestOverHttp2(session, '/a?b', { body: 'posted' })
    assert.deepEqual(JSON.parse(posted.body), ['1.1', '/a?b', 'string', 'chunked', 'posted'])
    const got = await requestOverHttp2(session, '/')
    assert.deepEqual([JSON.parse(got.body), got.headers['x-a']], [['1.1', '/', 'string', null, ''], '1, 2'])
  } finally {
    session.close()
  }
})
