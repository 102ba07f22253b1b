/**
 * The words of a control socket: one line of JSON asks, lines of JSON answer.
 *
 * ```text
 * → {"version":1,"method":"stacks","params":{}}
 * ← {"event":...}     none or more, in the meantime
 * ← {"result":...}  or  {"error":{"code":"OBSERVE_…","facts":{…},"message":"…"}}
 * ```
 * A second line `{"method":"stop"}` asks a method that takes a while to answer with what it has. A client
 * that closes the connection needs no answer. One request per connection; every length has a limit.
 */
import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { isPlainObject } from '../base/index.ts'
import { ObserveError } from './errors.ts'

export const VERSION = 1
export const REQUEST_BYTES_MAX = 64 * 1024
/** Characters of an answer: a profile of many threads has some tens of millions. */
export const ANSWER_CHARS_MAX = 256 * 1024 * 1024

export interface Request {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** One request, as its method sees it. */
export interface Asked {
  readonly params: Readonly<Record<string, unknown>>
  /** Aborted when the client asks for the answer now, or has disconnected. */
  readonly stop: AbortSignal
  /** Send the client something before the answer. */
  event(value: unknown): void
}

/** Resolves to the answer, as JSON has it. */
export type Method = (asked: Asked) => Promise<unknown>

/** @throws {ObserveError} `OBSERVE_REQUEST`, `OBSERVE_VERSION`. */
export function readRequest(line: string): Request {
  const refuse = (problem: string): never => {
    throw new ObserveError('OBSERVE_REQUEST', { problem })
  }
  let request: unknown
  try {
    request = JSON.parse(line)
  } catch {
    refuse('it is not JSON')
  }
  if (!isPlainObject(request)) return refuse('it is not an object')
  const { version, method, params = {} } = request
  if (version !== VERSION)
    throw new ObserveError('OBSERVE_VERSION', {
      expected: VERSION,
      received: JSON.stringify(version)?.slice(0, 100),
    })
  if (typeof method !== 'string') return refuse('its method is not a string')
  if (!isPlainObject(params)) return refuse('its params are not an object')
  return { method, params }
}

/**
 * Call `received` with each line that arrives.
 * @param charsMax Longest line; `tooLong` is called once for a longer one, and nothing after it.
 */
export function readLines(
  socket: Socket,
  charsMax: number,
  received: (line: string) => void,
  tooLong: () => void,
): void {
  const decoder = new StringDecoder('utf8')
  let parts: string[] = []
  let chars = 0
  let isOver = false
  socket.on('data', (bytes: Buffer) => {
    if (isOver) return
    const lines = decoder.write(bytes).split('\n')
    for (const [index, part] of lines.entries()) {
      chars += part.length
      if (chars > charsMax) {
        isOver = true
        parts = []
        return tooLong()
      }
      parts.push(part)
      if (index === lines.length - 1) return
      const line = parts.join('')
      ;[parts, chars] = [[], 0]
      received(line)
    }
  })
}

/** Whether a line asks the running method to answer now. */
export function isStop(line: string): boolean {
  try {
    return (JSON.parse(line) as { readonly method?: unknown } | null)?.method === 'stop'
  } catch {
    return false
  }
}
