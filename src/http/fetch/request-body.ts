/**
 * The body of a request: whole, as a stream, and as what the handler asked for.
 *
 * None of it keeps state; whether a body may still be read is decided by request.ts.
 */
import type { Exchange } from '../message/core-interface.ts'
import { decodeUtf8 } from '../message/text.ts'
import { clientFault } from '../errors.ts'

export const NO_BYTES = new Uint8Array(0)

/** The whole body in one piece that belongs to the caller. */
export async function gather(exchange: Exchange): Promise<Uint8Array> {
  const first = await exchange.pull()
  if (first === undefined) return NO_BYTES
  const second = await exchange.pull()
  if (second === undefined) return first
  const chunks = [first, second]
  for (let next = await exchange.pull(); next !== undefined; next = await exchange.pull()) chunks.push(next)
  const whole = new Uint8Array(chunks.reduce((bytes, chunk) => bytes + chunk.byteLength, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

/** The body as a stream: a pull of the reader is a pull of the core, so nothing is read ahead. */
export function bodyStream(exchange: Exchange): ReadableStream<Uint8Array> {
  const source = {
    type: 'bytes' as const,
    async pull(controller: ReadableByteStreamController): Promise<void> {
      const chunk = await exchange.pull()
      if (chunk !== undefined) return controller.enqueue(chunk as Uint8Array<ArrayBuffer>)
      controller.close()
      controller.byobRequest?.respond(0) // a reader that brought its own buffer gets it back
    },
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/** The stream of a body that somebody reads, or has read, in another way: nobody else can read it. */
export function usedStream(): ReadableStream<Uint8Array> {
  const used = new ReadableStream<Uint8Array>({ type: 'bytes' })
  void used.getReader().cancel() // never fails: it has no source
  return used
}

/** What is there already is a view of the core's memory; what was waited for is the caller's own. */
export function ownBytes(bytes: Uint8Array, isOwn: boolean): Uint8Array<ArrayBuffer> {
  return isOwn ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeUtf8(bytes))
  } catch (error) {
    throw clientFault(error)
  }
}
