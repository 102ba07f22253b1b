/**
 * The client of table `stream`: sends a body of so many MiB and reads the response meanwhile.
 *
 * A process of its own, so that the server's memory is that of the server. It compares the first and the last
 * byte of each piece of the response with those it has sent, inverted, and prints how many bytes came.
 */
import { once } from 'node:events'
import http from 'node:http'
import { Readable } from 'node:stream'

const MEBI = 2 ** 20
const CHUNK_BYTES = 2 ** 16
const [url, mebibytes] = process.argv.slice(2)
const chunks = (Number(mebibytes) * MEBI) / CHUNK_BYTES

function* body(): Generator<Buffer> {
  for (let index = 0; index < chunks; index++) yield Buffer.alloc(CHUNK_BYTES, index)
}

/** The byte of the response at an offset: that of the chunk there, inverted. */
function expected(offset: number): number {
  return (Math.floor(offset / CHUNK_BYTES) & 255) ^ 255
}

const request = http.request(url, { method: 'POST', agent: false })
const answered = once(request, 'response') as Promise<[http.IncomingMessage]>
Readable.from(body(), { objectMode: false }).pipe(request)
const [response] = await answered
let bytes = 0
for await (const piece of response as AsyncIterable<Buffer>) {
  const [first, last] = [piece[0], piece[piece.length - 1]]
  if (first !== expected(bytes) || last !== expected(bytes + piece.length - 1))
    throw new Error(`the response differs in the ${piece.length} bytes at ${bytes}`)
  bytes += piece.length
}
console.log(bytes)
