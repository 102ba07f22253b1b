/**
 * What every server of the http table returns, and how a client checks it.
 *
 * The routes are the same for all; the constant is one only where a server has such routes.
 */

import { fileURLToPath } from 'node:url'
import { itemsOf } from '../arena/dataset.ts'
import { ORDER, PATH, placed } from '../contract/order.ts'

/** The greeting. */
export const HELLO = 'Hello, World!'

/** The user with an id. */
export function userOf(id: string): { id: string; name: string; active: boolean } {
  return { id, name: `user ${id}`, active: true }
}

/** One KiB of JSON, as a client sends it. */
export const ECHO = JSON.stringify(
  Array.from({ length: 18 }, (_, id) => ({ id, name: `item ${id}`, tags: ['a', 'b'], ok: true })),
)

/** The folder of static files, beside the compiled bench; table static writes it. */
export const FOLDER = fileURLToPath(new URL('../../static', import.meta.url))

/** The static file: 100 kB of text. */
export const FILE = Array.from({ length: 2000 }, (_, line) => `${line}`.padStart(49, '.') + '\n').join('')

/** A chunk of the stream, 1 kB. */
export const CHUNK = new TextEncoder().encode('x'.repeat(1024))
const CHUNKS = 16

/** The stream. */
export async function* generated(): AsyncGenerator<Uint8Array> {
  for (let left = CHUNKS; left > 0; left -= 1) yield CHUNK
}

/** The same as a stream of the standard. */
export function streamed(): ReadableStream<Uint8Array> {
  let left = CHUNKS
  return new ReadableStream({
    pull(controller) {
      if (left > 0) controller.enqueue(CHUNK)
      else controller.close()
      left -= 1
    },
  })
}

const WORK_MS = 1

/** Keeps the thread busy for 1 ms. */
export function work(): string {
  const until = performance.now() + WORK_MS
  let turns = 0
  while (performance.now() < until) turns += 1
  return turns > 0 ? 'worked' : 'not worked'
}

/** A request and the body of its response. */
export interface Asked {
  readonly path: string
  readonly body?: string
  readonly expected: string
}

/** What is asked in each section. */
export const ASKED: Readonly<Record<string, Asked>> = {
  hello: { path: '/', expected: HELLO },
  user: { path: '/user/7', expected: JSON.stringify(userOf('7')) },
  echo: { path: '/echo', body: ECHO, expected: ECHO },
  constant: { path: '/constant', expected: HELLO },
  pipelined: { path: '/', expected: HELLO },
  work: { path: '/work', expected: 'worked' },
  'hono hello': { path: '/', expected: HELLO },
  'hono user': { path: '/user/7', expected: JSON.stringify(userOf('7')) },
  'hono echo': { path: '/echo', body: ECHO, expected: ECHO },
  'express hello': { path: '/', expected: HELLO },
  'express user': { path: '/user/7', expected: JSON.stringify(userOf('7')) },
  'express echo': { path: '/echo', body: ECHO, expected: ECHO },
  'effect hello': { path: '/', expected: HELLO },
  'effect user': { path: '/user/7', expected: JSON.stringify(userOf('7')) },
  order: {
    path: PATH,
    body: JSON.stringify(ORDER),
    expected: JSON.stringify(placed('17', 'web', 20, ORDER)),
  },
  'arena baseline': { path: '/baseline11?a=13&b=42', expected: '55' },
  'arena pipelined': { path: '/pipeline', expected: 'ok' },
  'arena json': { path: '/json/25?m=3', expected: JSON.stringify(itemsOf(25, 3)) },
  file: { path: '/file.txt', expected: FILE },
  generator: { path: '/generated', expected: 'x'.repeat(1024 * CHUNKS) },
  stream: { path: '/streamed', expected: 'x'.repeat(1024 * CHUNKS) },
  'two cores': { path: '/work', expected: 'worked' },
  'two cores hello': { path: '/', expected: HELLO },
}
