/**
 * The head of a response as Node's classes pass it on, as pairs of names and values.
 *
 * Node checks what is set header by header; what `writeHead` alone is called with is checked here, by Node's
 * own functions.
 */
import { type ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http'

export type Pairs = [string, string][]

/** The headers of a response: those that were set, or those that `writeHead` was called with alone. */
export function pairsOf(res: ServerResponse, headers: unknown): Pairs {
  const pairs: Pairs = []
  const names = (res as unknown as { getRawHeaderNames(): string[] }).getRawHeaderNames()
  if (names.length > 0) for (const name of names) add(pairs, name, res.getHeader(name))
  else if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries((headers ?? {}) as Record<string, unknown>))
      addChecked(pairs, name, value)
  } else if (Array.isArray(headers[0])) {
    for (const [name, value] of headers as [string, unknown][]) addChecked(pairs, name, value)
  } else {
    for (let at = 0; at < headers.length; at += 2)
      addChecked(pairs, (headers as string[])[at], headers[at + 1])
  }
  return pairs
}

/** Those that were set have been checked then. */
function addChecked(pairs: Pairs, name: string, value: unknown): void {
  validateHeaderName(name)
  for (const one of Array.isArray(value) ? value : [value]) validateHeaderValue(name, one as string)
  add(pairs, name, value)
}

function add(pairs: Pairs, name: string, value: unknown): void {
  if (!Array.isArray(value)) pairs.push([name, String(value)])
  else if (value.length > 1 && name.toLowerCase() === 'cookie') pairs.push([name, value.join('; ')])
  else for (const one of value) pairs.push([name, String(one)])
}

/** The parts of lines `name: value`, as Node has written them. */
export function fieldsIn(lines: string): Pairs {
  return lines.split('\r\n').map((line) => line.split(/:\s*(.*)/s, 2) as [string, string])
}
