/**
 * Certificates of a test run, made when a test file is loaded, and clients that use them.
 *
 * Nothing is on the disk: no private key is part of the repository, and none expires.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import tls from 'node:tls'
import { settled } from '../../base/wait.test.support.ts'
import { type Made, makeCertificate } from './make.ts'

export const AUTHORITY = { name: 'authority', ...makeCertificate({ name: 'authority', isAuthority: true }) }

/** A certificate of the authority. */
export function certified(name: string, hosts: readonly string[] = [name]): Made {
  return makeCertificate({ name, hosts, issuer: AUTHORITY })
}

/** For localhost. */
export const SERVER = certified('localhost')

/** Limits of a test in which a client waits on purpose: a busy machine takes its own time. */
export const PATIENT = { headersMs: 90_000, bodyMs: 90_000 }

export interface Got {
  readonly status: number
  readonly body: string
  readonly protocol: string | null
  readonly isReused: boolean
  /** Names of the server's certificate. */
  readonly names: string | undefined
}

/** Options of a client; `servername` is localhost by default. */
export type Client = https.RequestOptions & { readonly body?: Uint8Array | string; readonly session?: Buffer }

/** One request on a connection of its own, unless an agent is given; rejects when there is no response. */
export async function request(port: number, path = '/', { body, ...more }: Client = {}): Promise<Got> {
  const sent = https.request({
    host: '127.0.0.1',
    port,
    path,
    servername: 'localhost',
    ca: AUTHORITY.cert,
    agent: false,
    method: body === undefined ? 'GET' : 'POST',
    ...more,
  })
  sent.end(body)
  const [response] = (await settled(once(sent, 'response'), 'a response')) as [IncomingMessage]
  const socket = response.socket as tls.TLSSocket
  const facts = {
    protocol: socket.getProtocol(),
    isReused: socket.isSessionReused(),
    names: socket.getPeerCertificate().subjectaltname,
  }
  const pieces: Buffer[] = []
  for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece)
  if (!sent.writableFinished) sent.on('error', () => {}).destroy() // a response to the head alone
  return { status: response.statusCode!, body: Buffer.concat(pieces).toString('latin1'), ...facts }
}

/** A connection whose handshake is complete. */
export async function connect(port: number, more: tls.ConnectionOptions = {}): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    host: '127.0.0.1',
    port,
    servername: 'localhost',
    ca: AUTHORITY.cert,
    ...more,
  })
  await settled(once(socket, 'secureConnect'), 'a handshake')
  return socket
}

/** Whether a client is refused: in the handshake or, with TLS 1.3, instead of a response. */
export async function isRefused(port: number, more: Client = {}): Promise<boolean> {
  return request(port, '/', more).then(
    () => false,
    () => true,
  )
}
