/**
 * Clients of HTTP/2 for tests: the one of node:http2, and one that writes frames as they are given, for what
 * the first would not send.
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { settled } from '../../base/wait.test.support.ts'

export interface Got {
  readonly status: number
  readonly headers: http2.IncomingHttpHeaders
  readonly body: string
  readonly trailers: http2.IncomingHttpHeaders
  /** Headers of informational responses. */
  readonly hints: readonly http2.IncomingHttpHeaders[]
}

export interface Asked {
  readonly headers?: http2.OutgoingHttpHeaders
  readonly body?: Uint8Array | string
  readonly trailers?: http2.OutgoingHttpHeaders
}

/** A connection by prior knowledge. */
export function connect(port: number, options: http2.ClientSessionOptions = {}): http2.ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${port}`, options)
  session.on('error', () => {}) // its streams report it
  return session
}

/** Sends a request and reads its response. */
export async function request(
  session: http2.ClientHttp2Session,
  path: string,
  asked: Asked = {},
): Promise<Got> {
  const { headers = {}, body, trailers } = asked
  const hasBody = body !== undefined || trailers !== undefined
  const stream = session.request(
    { ':path': path, ':method': hasBody ? 'POST' : 'GET', ...headers },
    { endStream: !hasBody, waitForTrailers: trailers !== undefined },
  )
  stream.on('wantTrailers', () => stream.sendTrailers(trailers!))
  if (hasBody) stream.end(body)
  return settled(read(stream), `a response to ${path}`)
}

/** Reads a response; rejects when its stream is reset. */
export async function read(stream: http2.ClientHttp2Stream): Promise<Got> {
  const hints: http2.IncomingHttpHeaders[] = []
  let trailers: http2.IncomingHttpHeaders = {}
  stream.on('headers', (headers) => void hints.push(headers))
  stream.on('trailers', (headers) => (trailers = headers))
  const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders & { ':status': number }]
  const pieces: Buffer[] = []
  for await (const piece of stream as AsyncIterable<Buffer>) pieces.push(piece)
  return {
    status: headers[':status'],
    headers,
    body: Buffer.concat(pieces).toString('latin1'),
    trailers,
    hints,
  }
}

export const Type = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const END_STREAM = 1
export const END_HEADERS = 4
export const ACK = 1
/** GET / of http://a, without a table: three indexed fields, and the authority as a literal. */
export const GET = Buffer.from([0x82, 0x84, 0x86, 0x01, 0x01, 0x61])
/** The same as POST. */
export const POST = Buffer.from([0x83, 0x84, 0x86, 0x01, 0x01, 0x61])

/** The bytes of a frame. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A frame that was received. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** A connection of raw frames; its preface and empty settings are sent. */
export class RawClient {
  readonly frames: Frame[] = []
  readonly closed: Promise<unknown>
  readonly socket: net.Socket
  #rest = Buffer.alloc(0)

  private constructor(socket: net.Socket) {
    this.socket = socket
    this.closed = new Promise((resolve) => socket.on('close', resolve))
    socket.on('error', () => {}).on('data', (chunk: Buffer) => this.#take(chunk))
  }

  static async connect(port: number, settings: Uint8Array = new Uint8Array()): Promise<RawClient> {
    const socket = net.connect({ port, host: '127.0.0.1' })
    await once(socket, 'connect')
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(Type.settings, 0, 0, settings))
    return new RawClient(socket)
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 9) {
      const bytes = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < 9 + bytes) return
      const payload = this.#rest.subarray(9, 9 + bytes)
      this.frames.push({
        type: this.#rest[3],
        flags: this.#rest[4],
        stream: this.#rest.readUInt32BE(5),
        payload,
      })
      this.#rest = this.#rest.subarray(9 + bytes)
    }
  }

  /** The reason of the GOAWAY that was received. */
  get reason(): number | undefined {
    return this.frames.findLast(({ type }) => type === Type.goAway)?.payload.readUInt32BE(4)
  }
}
