/**
 * A client of raw frames for tests, over HTTP/1.1 and HTTP/2: what it sends may break every rule, and what it
 * reads is read strictly.
 *
 * A frame is shown as a word: `text Hello`, `bytes 00ff`, `close 1000 bye`, `ping`, `pong`.
 */
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import http2 from 'node:http2'
import type { Duplex } from 'node:stream'
import { onCores, onServer, type Start } from '../cores.test.support.ts'
import type { WebSocketHandlers } from '../index.ts'
import { connect } from '../raw.test.support.ts'
import type { HttpServer } from '../server.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
/** How long a test waits for what must come. */
const PATIENCE_MS = 60_000

/** A frame as clients send it. */
export function frame(first: number, payload: string | Uint8Array = ''): Buffer {
  const bytes = Buffer.from(payload as Uint8Array)
  const mask = [0x37, 0xfa, 0x21, 0x3d]
  const { length } = bytes
  const head = [first]
  if (length < 126) head.push(0x80 | length)
  else if (length < 65_536) head.push(0x80 | 126, length >> 8, length & 255)
  else
    head.push(0x80 | 127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255)
  return Buffer.concat([Buffer.from([...head, ...mask]), bytes.map((byte, at) => byte ^ mask[at % 4])])
}

/** The payload of a close frame. */
export function closing(code: number, reason = ''): Buffer {
  return Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)])
}

export interface Opening {
  readonly path?: string
  /** Header lines in place of the usual ones. */
  readonly lines?: readonly string[]
  /** Further header lines. */
  readonly more?: readonly string[]
  /** Bytes sent in the same write. */
  readonly early?: Uint8Array
}

export const LINES: readonly string[] = [
  'Host: localhost',
  'Upgrade: websocket',
  'Connection: Upgrade',
  `Sec-WebSocket-Key: ${KEY}`,
  'Sec-WebSocket-Version: 13',
]

/** How a connection becomes a WebSocket. */
export interface Clients {
  /** Sends a request and reads the response, whatever it is. */
  ask(port: number, opening?: Opening): Promise<RawClient>
  /** The same; the request must be granted. */
  open(port: number, opening?: Opening): Promise<RawClient>
}

/** A test on each core over HTTP/1.1, and over HTTP/2 where there is a native core. */
export function onWires(name: string, body: (start: Start, clients: Clients) => Promise<void>): void {
  onCores(name, (start) => body(start, RawClient))
  onServer(`${name}, over HTTP/2`, (start) => body(start, OVER_HTTP2))
}

export class RawClient {
  readonly socket: Duplex
  /** Status of the response; 101 is the 200 of HTTP/2, too. */
  status = 0
  /** The head of the response. */
  head = ''
  /** Words of the frames that were received. */
  readonly words: string[] = []
  /** Emits `news` whenever something was received, or the end. */
  readonly events = new EventEmitter()
  /** Whether the server has ended the connection. */
  isEnded = false
  #bytes: Buffer = Buffer.alloc(0)

  constructor(socket: Duplex) {
    this.socket = socket
    socket.on('data', (piece: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, piece])
      this.#read()
      this.events.emit('news')
    })
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.isEnded = true
        this.events.emit('news')
      })
    }
  }

  /** Sends a request and reads the response, whatever it is. */
  static async ask(port: number, opening: Opening = {}): Promise<RawClient> {
    const client = new RawClient(await connect(port))
    const { path = '/', lines = LINES, more = [], early = new Uint8Array() } = opening
    const head = [`GET ${path} HTTP/1.1`, ...lines, ...more, '', ''].join('\r\n')
    client.socket.write(Buffer.concat([Buffer.from(head), early]))
    await client.until(() => client.status !== 0 || client.isEnded)
    return client
  }

  /** The same; the response must be 101 and prove that the server has read the key. */
  static async open(port: number, opening?: Opening): Promise<RawClient> {
    const client = await RawClient.ask(port, opening)
    const accept = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    if (client.status !== 101) throw new Error(client.head)
    if (client.header('sec-websocket-accept') !== accept) throw new Error(client.head)
    return client
  }

  header(name: string): string | undefined {
    return new RegExp(`^${name}: (.*)$`, 'im').exec(this.head)?.[1].trimEnd()
  }

  send(...frames: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(frames))
  }

  text(text: string): void {
    this.send(frame(0x81, text))
  }

  /** Waits for `condition`, which may change with everything that is received. */
  async until(condition: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    while (!condition()) await once(this.events, 'news', { signal })
  }

  /** The next `count` words, at least. */
  async received(count: number): Promise<readonly string[]> {
    await this.until(() => this.words.length >= count || this.isEnded)
    return this.words
  }

  /** All words, when the server has ended the connection. */
  async rest(): Promise<readonly string[]> {
    await this.until(() => this.isEnded)
    return this.words
  }

  /** Closes as the protocol demands. */
  async close(code = 1000): Promise<void> {
    this.send(frame(0x88, closing(code)))
    await this.until(() => this.isEnded)
    this.socket.destroy()
  }

  #read(): void {
    if (this.status === 0) {
      const end = this.#bytes.indexOf('\r\n\r\n')
      if (end < 0) return
      this.head = this.#bytes.subarray(0, end).toString('latin1')
      this.#bytes = this.#bytes.subarray(end + 4)
      this.status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(this.head)?.[1])
    }
    while (this.status === 101 && this.#readFrame());
  }

  #readFrame(): boolean {
    const bytes = this.#bytes
    if (bytes.length < 2) return false
    if ((bytes[1] & 128) !== 0) throw new Error('a server does not mask')
    if ((bytes[0] & 0xb0) !== 0x80) throw new Error(`unexpected bits: ${bytes[0]}`)
    const short = bytes[1]
    const from = short < 126 ? 2 : short === 126 ? 4 : 10
    if (bytes.length < from) return false
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : bytes.readUInt32BE(6)
    if (bytes.length < from + length) return false
    const payload = bytes.subarray(from, from + length)
    this.#bytes = bytes.subarray(from + length)
    this.words.push(wordOf(bytes[0] & 0x4f, payload))
    return true
  }
}

/** WebSockets in streams (RFC 8441), each on a connection of its own. */
export const OVER_HTTP2: Clients = {
  async ask(port, opening) {
    const session = http2.connect(`http://127.0.0.1:${port}`)
    session.on('error', () => {}) // its stream reports it
    const client = await askOn(session, opening)
    client.socket.on('close', () => session.close())
    if (client.socket.destroyed) session.close()
    return client
  },
  async open(port, opening) {
    return granted(await OVER_HTTP2.ask(port, opening))
  },
}

/** A WebSocket in a stream of a connection that may have others. */
export async function openOn(session: http2.ClientHttp2Session, opening?: Opening): Promise<RawClient> {
  return granted(await askOn(session, opening))
}

async function askOn(
  session: http2.ClientHttp2Session,
  { path = '/', lines = LINES, more = [], early }: Opening = {},
): Promise<RawClient> {
  if (session.connecting) await once(session, 'remoteSettings')
  if (session.remoteSettings.enableConnectProtocol !== true) throw new Error('CONNECT is not announced')
  const stream = session.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':authority': 'localhost',
    ':path': path,
    ...fieldsOf([...lines, ...more]),
  })
  stream.on('error', () => {})
  const client = new RawClient(stream)
  if (early !== undefined) stream.write(early)
  stream.on('response', (headers) => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`)
    client.head = fields.join('\r\n')
    const status = Number(headers[':status'])
    client.status = status === 200 ? 101 : status
    client.events.emit('news')
  })
  await client.until(() => client.status !== 0 || client.isEnded)
  return client
}

function granted(client: RawClient): RawClient {
  const own = ['connection', 'upgrade', 'sec-websocket-accept'].filter(
    (name) => client.header(name) !== undefined,
  )
  if (client.status !== 101 || own.length > 0) throw new Error(`${client.status} ${client.head}`)
  return client
}

/** Lines of HTTP/1.1 as headers, without those that HTTP/2 has no use for. */
function fieldsOf(lines: readonly string[]): Record<string, string> {
  const pairs = lines.map((line) => line.split(/: (.*)/, 2) as [string, string])
  return Object.fromEntries(
    pairs.filter(([name]) => !/^(host|upgrade|connection|sec-websocket-key)$/i.test(name)),
  )
}

function wordOf(opcode: number, payload: Buffer): string {
  const utf8 = (bytes: Buffer): string =>
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  switch (opcode) {
    case 1:
      return `text ${utf8(payload)}`
    case 2:
      return `bytes ${payload.toString('hex')}`
    case 8:
      return payload.length === 0
        ? 'close'
        : `close ${payload.readUInt16BE()} ${utf8(payload.subarray(2))}`.trim()
    case 9:
      return `ping ${utf8(payload)}`.trim()
    case 10:
      return `pong ${utf8(payload)}`.trim()
    default:
      return `${opcode} ${payload.toString('hex')}`
  }
}

/** A promise and what resolves it. */
export function later<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((found) => (resolve = found))
  return { promise, resolve }
}

/** A server whose handlers do not fail: an assertion in one of them ends the process with its error. */
export const serving = (start: Start, websocket: WebSocketHandlers): Promise<HttpServer> =>
  start({
    routes: { '/': { websocket } },
    error: (cause) => {
      setImmediate(() => {
        throw cause
      })
    },
  })
