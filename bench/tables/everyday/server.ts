/**
 * A contender's server as a command: how long its process takes until the first response.
 *
 * The command prints the URL that it serves, as `corespun serve` does.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { BenchError } from '../../harness/errors.ts'
import { BENCH_FOLDER } from '../../harness/paths.ts'

const START_MS_MAX = 60_000
const REQUEST = 'GET / HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n'

/**
 * @param args Of this Node.
 * @returns The first response, and the milliseconds from the start of the process until it was there.
 * @throws {BenchError} `CONTENDER_DIED` when it ends before, or takes longer than a minute.
 */
export async function firstResponse(
  contender: string,
  args: readonly string[],
): Promise<{ response: string; firstMs: number }> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, args, { cwd: BENCH_FOLDER, stdio: ['ignore', 'pipe', 'inherit'] })
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
  const ended = once(child, 'close')
  try {
    let printed = ''
    for await (const piece of child.stdout.setEncoding('utf8')) {
      printed += piece as string
      const port = /http:\/\/\S+?:(\d+)/.exec(printed)?.[1]
      if (port === undefined) continue
      const response = await responseFrom(Number(port))
      return { response, firstMs: performance.now() - startedMs }
    }
    throw new BenchError('CONTENDER_DIED', { contender, why: 'it ended before it served' })
  } finally {
    clearTimeout(late)
    child.kill('SIGKILL')
    await ended
  }
}

async function responseFrom(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write(REQUEST)
  let response = ''
  for await (const piece of socket) response += piece as string
  return response
}
