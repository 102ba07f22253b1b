/**
 * Asks other processes by their control sockets.
 * Answers are not trusted: they have limits, and an answer that is not JSON is an error.
 */
import { ObserveError, type SentError, receivedError } from './errors.ts'
import { ANSWER_CHARS_MAX, VERSION, readLines } from './protocol.ts'
import { type ControlSocket, connected, controlSockets, isAnswered } from './sockets.ts'

/**
 * The process with that pid or name, and the processes that are its workers.
 * @throws {ObserveError} `OBSERVE_FOLDER`, `OBSERVE_UNKNOWN`, `OBSERVE_AMBIGUOUS`.
 */
export async function findProcess(named: string): Promise<readonly [ControlSocket, ...ControlSocket[]]> {
  const all = await controlSockets()
  const known = all.filter(({ parent }) => parent === undefined)
  const byPid = all.filter(({ pid }) => String(pid) === named)
  const [found, ...others] = byPid.length > 0 ? byPid : known.filter(({ name }) => name === named)
  if (found === undefined || !(await isAnswered(found.path))) {
    const names = known.filter((each) => each !== found).map(({ pid, name }) => `${pid} (${name})`)
    throw new ObserveError('OBSERVE_UNKNOWN', { process: named, known: names })
  }
  if (others.length > 0) {
    const pids = [found, ...others].map(({ pid }) => pid)
    throw new ObserveError('OBSERVE_AMBIGUOUS', { process: named, pids })
  }
  return [found, ...all.filter(({ parent }) => parent === found.pid)]
}

/** How to wait for an answer. */
export interface Answers {
  /** Longest time until the answer, in ms. */
  readonly timeoutMs: number
  /** Aborted to have the answer now. */
  readonly stop?: AbortSignal
  /** Receives what the method reports in the meantime. */
  readonly event?: (value: unknown) => void
}

/**
 * Ask a process.
 * @returns The answer; its shape depends on the method.
 * @throws {ObserveError} What the process answers; `OBSERVE_CUT` without an answer.
 */
export async function ask(
  { pid, path }: ControlSocket,
  method: string,
  params: object,
  { timeoutMs, stop, event }: Answers,
): Promise<unknown> {
  const cut = (reason: string): ObserveError => new ObserveError('OBSERVE_CUT', { pid, reason })
  const socket = await connected(path).catch((error: Error) => {
    throw cut(error.message)
  })
  const stopped = (): void => void socket.write('{"method":"stop"}\n')
  const timer = setTimeout(() => socket.destroy(cut(`it took longer than ${timeoutMs} ms`)), timeoutMs)
  stop?.addEventListener('abort', stopped)
  try {
    return await new Promise((resolve, reject) => {
      socket.on('error', (error) => reject(error instanceof ObserveError ? error : cut(error.message)))
      socket.on('close', () => reject(cut('it closed the connection')))
      const received = (line: string): void => {
        const answer = JSON.parse(line) as { event?: unknown; result?: unknown; error?: SentError }
        if ('event' in answer) event?.(answer.event)
        else if (answer.error !== undefined) reject(receivedError(answer.error, method))
        else resolve(answer.result)
      }
      readLines(
        socket,
        ANSWER_CHARS_MAX,
        (line) => {
          try {
            received(line)
          } catch {
            reject(cut('its answer is not JSON'))
          }
        },
        () => reject(cut('its answer is too long')),
      )
      socket.write(`${JSON.stringify({ version: VERSION, method, params })}\n`)
      if (stop?.aborted === true) stopped()
    })
  } finally {
    clearTimeout(timer)
    stop?.removeEventListener('abort', stopped)
    socket.destroy()
  }
}
