/**
 * Why a process cannot be looked into, as errors: those of who opens a control socket, of who asks by it, and
 * of the process that answers, which cross the socket with their code and facts.
 */
import { type ArgumentFacts, CorespunError, type Sentences, argumentSentence } from '../base/index.ts'

/** The codes of {@link ObserveError} with their facts. */
export interface ObserveCodes {
  /** An argument, an option or a parameter of a request has a wrong value. */
  OBSERVE_ARGUMENT: ArgumentFacts
  /** `observe()` was called in a worker, or a second time before the first socket was closed. */
  OBSERVE_ONCE: { readonly problem: string }
  /** The folder of control sockets cannot be used, or belongs to somebody else. */
  OBSERVE_FOLDER: { readonly folder: string; readonly reason: string }
  /** The process cannot listen on its socket. */
  OBSERVE_SOCKET: { readonly path: string; readonly reason: string }
  /** This runtime cannot do it: `needs` is what is missing. */
  OBSERVE_RUNTIME: { readonly runtime: string; readonly needs: string }
  /** No process of this user with that pid or name has a control socket. */
  OBSERVE_UNKNOWN: { readonly process: string; readonly known: readonly string[] }
  /** Several processes have that name. */
  OBSERVE_AMBIGUOUS: { readonly process: string; readonly pids: readonly number[] }
  /** The connection ended before the answer, or the answer took too long. */
  OBSERVE_CUT: { readonly pid: number; readonly reason: string }
  /** A request is not one line of JSON with a version, a method and parameters. */
  OBSERVE_REQUEST: { readonly problem: string }
  /** What the other process has sent is of another version of the protocol, or names none. */
  OBSERVE_VERSION: { readonly expected: number; readonly received: string | undefined }
  /** The process has no such method. */
  OBSERVE_METHOD: { readonly method: string; readonly known: readonly string[] }
  /** The process was not started with `allowControl`, or has no such action. */
  OBSERVE_FORBIDDEN: { readonly action: string; readonly allowed: readonly string[] }
  /** Too many requests are in progress. */
  OBSERVE_BUSY: { readonly limit: string }
  /** The answer is longer than an answer may be. */
  OBSERVE_ANSWER_LARGE: { readonly bytes: number; readonly bytesMax: number }
  /** The method failed. */
  OBSERVE_FAILED: { readonly method: string; readonly reason: string }
  /** A thread runs native code, and its stack cannot be read. */
  OBSERVE_THREAD_SILENT: { readonly thread: string; readonly timeoutMs: number }
}

const sentences: Sentences<ObserveCodes> = {
  OBSERVE_ARGUMENT: argumentSentence,
  OBSERVE_ONCE: ({ problem }) => problem,
  OBSERVE_FOLDER: ({ folder, reason }) => `the folder of control sockets, ${folder}: ${reason}`,
  OBSERVE_SOCKET: ({ path, reason }) => `cannot listen on ${path}: ${reason}`,
  OBSERVE_RUNTIME: ({ runtime, needs }) => `${runtime} cannot do this: it needs ${needs}`,
  OBSERVE_UNKNOWN: ({ process, known }) =>
    (/^\d+$/.test(process)
      ? `process ${process} has no control socket; `
      : `no process named ${process} has a control socket; `) +
    (known.length > 0
      ? `processes that have one: ${known.join(', ')}`
      : 'corespun serve, run and host open one after a second, a program by observe() of corespun/observe'),
  OBSERVE_AMBIGUOUS: ({ process, pids }) =>
    `several processes are called ${process}: pass one of the pids ${pids.join(', ')}`,
  OBSERVE_CUT: ({ pid, reason }) => `process ${pid} did not answer: ${reason}`,
  OBSERVE_REQUEST: ({ problem }) => `invalid request: ${problem}`,
  OBSERVE_VERSION: ({ expected, received }) =>
    `${received === undefined ? 'missing protocol version' : `unsupported protocol version ${received}`} ` +
    `(expected ${expected}); run the command of the same version of corespun as the process`,
  OBSERVE_METHOD: ({ method, known }) => `unknown method ${method} (expected ${known.join(', ')})`,
  OBSERVE_FORBIDDEN: ({ action, allowed }) =>
    `the action ${action} is not allowed (allowed: ${allowed.join(', ') || 'none'}); ` +
    'start the process with --allow-control, or pass allowControl to observe()',
  OBSERVE_BUSY: ({ limit }) => `too many requests at once (limit: ${limit}); try again later`,
  OBSERVE_ANSWER_LARGE: ({ bytes, bytesMax }) => `the answer has ${bytes} bytes, more than ${bytesMax}`,
  OBSERVE_FAILED: ({ method, reason }) => `${method} failed: ${reason}`,
  OBSERVE_THREAD_SILENT: ({ thread, timeoutMs }) =>
    `${thread} runs native code: it did not answer within ${timeoutMs} ms`,
}

/**
 * An error about a process that is looked into.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { observe, ObserveError } from 'corespun/observe'
 *
 * const error: unknown = await observe({ name: 'two words' }).catch((error: unknown) => error)
 * assert.ok(error instanceof ObserveError)
 * assert.equal(error.code, 'OBSERVE_ARGUMENT')
 * ```
 */
export class ObserveError<Code extends keyof ObserveCodes = keyof ObserveCodes> extends CorespunError<
  ObserveCodes,
  Code
> {
  /** @internal */
  static readonly sentences = sentences
}

/** An error as it crosses the socket. */
export interface SentError {
  readonly code: string
  readonly facts: object
  readonly message: string
}

/** @param method For an error that has no code of its own. */
export function sentError(thrown: unknown, method: string): SentError {
  const known =
    thrown instanceof CorespunError
      ? (thrown as ObserveError)
      : new ObserveError('OBSERVE_FAILED', { method, reason: String((thrown as Error)?.message ?? thrown) })
  return { code: known.code, facts: known.facts, message: known.message }
}

/** The error that another process has sent; its text may be anything. */
export function receivedError({ code, facts, message }: SentError, method: string): ObserveError {
  if (Object.hasOwn(sentences, code) && typeof facts === 'object' && facts !== null) {
    try {
      return new ObserveError(code as keyof ObserveCodes, facts as never)
    } catch {
      // Facts of another version.
    }
  }
  return new ObserveError('OBSERVE_FAILED', { method, reason: `${message} (${code})` })
}
