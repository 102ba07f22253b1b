/**
 * A conformance case: request bytes, the expected responses, and the section of the RFC that requires them.
 *
 * Cases are data; conformance.test.ts sends them to the native core.
 */

/** One response: its status, and its body if that matters. */
export type Expected = number | readonly [status: number, body: string]

/** What comes of a case. */
export interface Outcome {
  /** Responses in order; 1xx included. */
  readonly responses: readonly Expected[]
  /** Whether the server closes behind them. */
  readonly closes: boolean
}

/** One conversation with a server. */
export interface Case {
  readonly name: string
  /** Section of an RFC: '9112 3.2'. */
  readonly clause: string
  /** Bytes as Latin-1; several pieces are sent one after the other. */
  readonly send: string | readonly string[]
  readonly expect: Outcome
  /** Methods of the requests, if one determines whether its response has a body. */
  readonly methods?: readonly string[]
  /** The client ends its side behind what it sends. */
  readonly ends?: boolean
}

/** A row of a table. */
export function row(
  name: string,
  clause: string,
  send: Case['send'],
  expect: Outcome,
  more: Pick<Case, 'methods' | 'ends'> = {},
): Case {
  return { name, clause, send, expect, ...more }
}

/** These responses, and the connection persists. */
export function stays(...responses: Expected[]): Outcome {
  return { responses, closes: false }
}

/** These responses, and the connection closes. */
export function closes(...responses: Expected[]): Outcome {
  return { responses, closes: true }
}

/** The lines of a head, closed by an empty one. */
export function head(...lines: string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** A request for `/` of HTTP/1.1 with a host and these lines. */
export function get(...lines: string[]): string {
  return head('GET / HTTP/1.1', 'Host: x', ...lines)
}

/** A request that sends a body to be echoed. */
export function post(lines: readonly string[], body = ''): string {
  return head('POST /echo HTTP/1.1', 'Host: x', ...lines) + body
}

/** A chunked body to be echoed. */
export function chunked(body: string): string {
  return post(['Transfer-Encoding: chunked'], body)
}

/** One case for each of these bytes. */
export function each(characters: string, make: (character: string, shown: string) => Case): Case[] {
  return [...characters].map((character) => make(character, JSON.stringify(character)))
}

/** Every control character but those of `except`. */
export function controls(except = ''): string {
  const all = Array.from({ length: 33 }, (_, code) => String.fromCharCode(code === 32 ? 127 : code))
  return all.filter((character) => !except.includes(character)).join('')
}
