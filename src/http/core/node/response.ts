/**
 * How a `Response`, its hints and its trailers are written to node:http's response.
 *
 * Each in its turn: of pipelined requests, node:http holds back what comes before its turn.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { Turns, otherRuntime } from '../../../base/index.ts'
import { HttpError } from '../../errors.ts'
import { NO_BYTES } from '../../fetch/request-body.ts'

const BEYOND_ASCII = /[\x80-\xff]/

/** Sends a 103 in the response's turn. Node's own `writeEarlyHints` refuses valid links, and needs one. */
export function hint(response: ServerResponse, headers: string): boolean {
  // The connections of other runtimes' node:http are not written to directly.
  if (response.req.httpVersion === '1.0' || response.headersSent || otherRuntime() !== undefined) return false
  const head = `HTTP/1.1 103 Early Hints\r\n${headers}\r\n`
  if (response.socket !== null) response.socket.write(head, 'latin1')
  else response.once('socket', (socket: Socket) => socket.write(head, 'latin1'))
  return true
}

/** One that is there as a whole: in one piece, as pairs of fields and a body that is the response's own. */
export function sendWhole(
  response: ServerResponse,
  status: number,
  pairs: string[],
  body: string | Uint8Array | null,
): void {
  const isAscii = begin(response, status, pairs, false)
  response.end(typeof body === 'string' && !isAscii ? Buffer.from(body) : (body ?? undefined))
}

/** @param trailersOf Those of the response, when its body has ended. */
export async function send(
  { status, headers, body }: Response,
  response: ServerResponse,
  trailersOf: () => string[] | undefined,
): Promise<void> {
  const hasChunks = body !== null && response.req.httpVersion !== '1.0' && !headers.has('content-length')
  const isAscii = begin(response, status, [...headers].flat(), hasChunks)
  if (body === null) response.end()
  else {
    // As the native core: the first piece may come much later.
    if (isAscii) response.flushHeaders()
    else response.write(NO_BYTES)
    const reader = body.getReader()
    let isRead = false
    const leave = (): void => {
      if (isRead) return
      const why = new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'a streamed response' })
      reader.cancel(why).catch(() => {}) // it receives the reason
    }
    // The generator alone would be left with the next piece of its source.
    response.once('close', leave)
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      // A socket may take at once all that a source computes: then nothing else of the thread has a turn.
      const turns = new Turns()
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        if (turns.isDue()) await turns.taken()
        yield next.value
      }
      isRead = true
      // Before `pipeline` ends the response.
      response.addTrailers(entriesOf(trailersOf() ?? []))
    }
    await pipeline(pieces, response).finally(leave)
  }
}

/**
 * The head, which node:http sends with what comes first: as UTF-8 with a text, as Latin-1 before bytes.
 * @returns Whether both are the same.
 */
function begin(response: ServerResponse, status: number, made: string[], hasChunks: boolean): boolean {
  const { req: request } = response
  // node:http refuses to announce trailers where it sends no chunks.
  const isKept = hasChunks || !made.includes('trailer')
  const pairs = isKept ? made : made.filter((_, at) => made[at - (at % 2)] !== 'trailer')
  // node:http reads away a body that nobody has begun to read, and no other.
  if (request.readableDidRead && !request.complete) pairs.push('connection', 'close')
  response.writeHead(status, pairs)
  return !pairs.some((text) => BEYOND_ASCII.test(text))
}

function entriesOf(pairs: readonly string[]): [string, string][] {
  return Array.from({ length: pairs.length / 2 }, (_, at) => [pairs[2 * at], pairs[2 * at + 1]])
}
