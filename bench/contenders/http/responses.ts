/**
 * What every server of the http table returns, and how a client checks it.
 *
 * The routes are the same for all; the constant is one only where a server has such routes.
 */

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
  'effect hello': { path: '/', expected: HELLO },
  'effect user': { path: '/user/7', expected: JSON.stringify(userOf('7')) },
  'two cores': { path: '/work', expected: 'worked' },
  'two cores hello': { path: '/', expected: HELLO },
}
