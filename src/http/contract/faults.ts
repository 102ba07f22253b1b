/**
 * What of a request does not fit, and the response with all of it: problem details (RFC 9457).
 *
 * Bounded, because clients choose how much is wrong and how long the names are: a million wrong items are a
 * hundred faults and a count.
 */
import { getRequestId } from '../app/carried.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { SchemaIssue } from './schema.ts'

/** A part of a request that has a schema. */
export type RequestPart = 'params' | 'query' | 'headers' | 'cookies' | 'body'

/** One reason why a request does not fit. */
export interface RequestFault {
  /** The part of the request. */
  readonly where: RequestPart
  /** Keys that lead to the value in this part, from the outside; empty for the part itself. */
  readonly path: readonly (string | number)[]
  /** For people: the sentence of the schema. */
  readonly message: string
}

/** The body of a 400, 415 or 422 response, of type `application/problem+json`. */
export interface Problem {
  /** Always `about:blank`: the status is the kind of problem. */
  readonly type: 'about:blank'
  /** The status in words. */
  readonly title: string
  /** 400: not JSON. 415: another content type. 422: the request does not fit its schemas. */
  readonly status: 400 | 415 | 422
  /** All faults of the request, at most 100. */
  readonly errors: readonly RequestFault[]
  /** How many more there are. Absent: none. */
  readonly leftOut?: number
  /** The id of `requestId()`. Absent: that middleware is not in use. */
  readonly requestId?: string
}

const TITLES = { 400: 'Bad Request', 415: 'Unsupported Media Type', 422: 'Unprocessable Content' } as const

const FAULTS_MAX = 100
const KEYS_MAX = 32
const KEY_CHARS_MAX = 100
const MESSAGE_CHARS_MAX = 300

/** The faults of one request. */
export class Faults {
  readonly #list: RequestFault[] = []
  #leftOut = 0
  #status: Problem['status'] = 422

  /** Adds what a schema found, and how much of that was left out before. */
  add(where: RequestPart, issues: readonly SchemaIssue[], leftOut = 0): void {
    const room = FAULTS_MAX - this.#list.length
    for (const { message, path } of issues.slice(0, room))
      this.#list.push({ where, path: pathOf(path), message: cut(message, MESSAGE_CHARS_MAX) })
    this.#leftOut += Math.max(0, issues.length - room) + leftOut
  }

  /** Adds that the body cannot be read at all, which decides the status. */
  refuse(status: Problem['status'], message: string): void {
    this.#status = status
    this.add('body', [{ message }])
  }

  /** The response. */
  response(request: object): Response {
    const requestId = getRequestId(request)
    const problem: Problem = {
      type: 'about:blank',
      title: TITLES[this.#status],
      status: this.#status,
      errors: this.#list,
      ...(this.#leftOut === 0 ? {} : { leftOut: this.#leftOut }),
      ...(requestId === undefined ? {} : { requestId }),
    }
    const headers = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' }
    return new CorespunResponse(JSON.stringify(problem), { status: this.#status, headers })
  }
}

/** Issues as plain data, which travels between threads; not all of many. */
export function plainIssues(issues: readonly SchemaIssue[]): { issues: SchemaIssue[]; leftOut: number } {
  const plain = issues.slice(0, FAULTS_MAX).map(({ message, path }) => ({
    message: cut(message, MESSAGE_CHARS_MAX),
    path: pathOf(path),
  }))
  return { issues: plain, leftOut: issues.length - plain.length }
}

/** Issues in one line, for a message. */
export function issuesLine(issues: readonly SchemaIssue[]): string {
  const shown = issues.slice(0, 3).map(({ message, path }) => {
    const keys = pathOf(path).join('.')
    return `${keys === '' ? '' : `${keys}: `}${cut(message, MESSAGE_CHARS_MAX)}`
  })
  const rest = issues.length - shown.length
  return shown.join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

function pathOf(path: SchemaIssue['path'] = []): (string | number)[] {
  return path.slice(0, KEYS_MAX).map((segment) => {
    const key = typeof segment === 'object' ? segment.key : segment
    return typeof key === 'number' ? key : cut(String(key), KEY_CHARS_MAX)
  })
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text
}
