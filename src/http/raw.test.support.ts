/**
 * A client of raw bytes for tests: writes the bytes it receives and reads responses as they are on the wire.
 *
 * It implements just enough of HTTP to separate responses, and that part is strict.
 */
import { once } from 'node:events'
import net from 'node:net'

/** One response as received. */
export interface RawResponse {
  readonly status: number
  /** Names in lower case; repeated ones joined by ', '. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a conversation came to. */
export interface Conversation {
  readonly responses: readonly RawResponse[]
  /** Bytes after the last response. */
  readonly rest: string
  /** Whether the server closed. */
  readonly closed: boolean
}

/** How long a test waits for a response or a close that must come. */
const PATIENCE_MS = 60_000
/** How long silence must last to count as an open connection. */
const SILENCE_MS = 60

/** Where to connect to: a server's port on the loopback. */
export async function connect(port: number): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {}) // what is read, or not, is what is tested
  await once(socket, 'connect')
  return socket.setNoDelay(true)
}

/**
 * Sends pieces one after the other, and reads until `responses` responses are complete or the server closes.
 * @param methods The methods of the requests, for responses without bodies.
 * @param waits Whether the second piece is sent only after bytes were received.
 */
export async function converse(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  {
    responses,
    methods = [],
    end = false,
    waits = false,
  }: { responses: number; methods?: readonly string[]; end?: boolean; waits?: boolean },
): Promise<Conversation> {
  const socket = await connect(port)
  let text = ''
  let closed = false
  let wake = (): void => {}
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    wake()
  })
  socket.on('end', () => ((closed = true), wake())).on('close', () => ((closed = true), wake()))
  for (const piece of pieces) {
    if (!socket.writable) break
    socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
    if (waits && text === '' && !closed)
      await once(socket, 'data', { signal: AbortSignal.timeout(PATIENCE_MS) })
    else if (pieces.length > 1) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  if (end) socket.end()
  const late = Date.now() + PATIENCE_MS
  for (;;) {
    const read = readResponses(text, methods, closed)
    const isDone = closed || (responses > 0 && read.responses.length >= responses)
    if (isDone || Date.now() > late) break
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 50)
      wake = () => (clearTimeout(timer), resolve())
    })
    if (responses === 0 && text === '') break
  }
  // A server that announced its close closes, or the test fails; others stay open as far as silence shows.
  if (!closed) {
    const last = readResponses(text, methods, closed).responses.at(-1)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, last?.headers['connection'] === 'close' ? PATIENCE_MS : SILENCE_MS)
      wake = () => closed && (clearTimeout(timer), resolve())
    })
  }
  socket.destroy()
  return { ...readResponses(text, methods, closed), closed }
}

/** Reads all complete responses at the beginning of `text`. */
export function readResponses(
  text: string,
  methods: readonly string[],
  closed: boolean,
): { responses: RawResponse[]; rest: string } {
  const responses: RawResponse[] = []
  let rest = text
  for (;;) {
    const final = responses.filter(({ status }) => status >= 200).length
    const found = readOne(rest, methods[final] ?? 'GET', closed)
    if (found === undefined) return { responses, rest }
    responses.push(found.response)
    rest = rest.slice(found.length)
  }
}

function readOne(
  text: string,
  method: string,
  closed: boolean,
): { response: RawResponse; length: number } | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [line, ...fields] = text.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(line)?.[1])
  if (!(status >= 100)) throw new Error(`no status line: ${JSON.stringify(line)}`)
  const headers: Record<string, string> = {}
  for (const field of fields) {
    const [, name, value] = /^([!#$%&'*+\-.^_`|~\w]+): ?([\t\x20-\x7e\x80-\xff]*)$/.exec(field) ?? []
    if (name === undefined) throw new Error(`no field: ${JSON.stringify(field)}`)
    const key = name.toLowerCase()
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value
  }
  const from = end + 4
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD')
    return { response: { status, headers, body: '' }, length: from }
  if (headers['transfer-encoding'] !== undefined) {
    const chunked = readChunked(text, from)
    return chunked && { response: { status, headers, body: chunked.body }, length: chunked.end }
  }
  const length = headers['content-length']
  if (length === undefined)
    return closed ? { response: { status, headers, body: text.slice(from) }, length: text.length } : undefined
  if (!/^\d+$/.test(length)) throw new Error(`content-length ${length}`)
  if (text.length < from + Number(length)) return undefined
  const to = from + Number(length)
  return { response: { status, headers, body: text.slice(from, to) }, length: to }
}

function readChunked(text: string, from: number): { body: string; end: number } | undefined {
  let [body, at] = ['', from]
  for (;;) {
    const line = /^([0-9a-f]+)\r\n/i.exec(text.slice(at, at + 20))
    if (line === null) return undefined
    const size = Number.parseInt(line[1], 16)
    at += line[0].length
    if (text.length < at + size + 2) return undefined
    if (text.slice(at + size, at + size + 2) !== '\r\n') throw new Error('a chunk without its end')
    body += text.slice(at, at + size)
    at += size + 2
    if (size === 0) return { body, end: at }
  }
}
