/**
 * A NATS server of a test's own: on loopback, a free port, a folder that goes with it; ended by its pid.
 *
 * `npm test -- fleet` downloads the program and names it in CORESPUN_NATS_SERVER; without it these tests are
 * skipped, with that reason.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const PROGRAM = process.env['CORESPUN_NATS_SERVER']

/** The option `skip` of a test: why it cannot run here, or false. */
export const SKIP = PROGRAM === undefined ? 'without CORESPUN_NATS_SERVER; npm test -- fleet sets it' : false

export interface NatsServer {
  readonly url: string
  readonly child: ChildProcess
  /** What it keeps. */
  readonly folder: string
  /** SIGKILL, as a crash would. */
  kill(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Start one, with JetStream.
 * @param port Which it has; -1: a free one.
 * @param kept The folder of one that was killed. Default: a new one.
 * @param config Returns a configuration, with JetStream or without; of the server's folder.
 */
export async function startServer(
  port = -1,
  kept?: string,
  config?: (folder: string) => string,
): Promise<NatsServer> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'nats-'))
  const args = ['--addr', '127.0.0.1', '--port', String(port)]
  if (config === undefined) args.push('--jetstream', '--store_dir', folder)
  else {
    const path = join(folder, 'server.conf')
    writeFileSync(path, config(folder))
    args.push('--config', path)
  }
  const child = spawn(PROGRAM!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const closed = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    if (line.includes('Server is ready')) break
  }
  child.stderr.resume()
  const [, address] = /client connections on (127\.0\.0\.1:\d+)/.exec(lines.join('\n')) ?? []
  if (address === undefined) throw new Error(`nats-server did not start:\n${lines.join('\n')}`)
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal)
    await closed
  }
  return {
    url: `nats://${address}`,
    child,
    folder,
    kill: () => end('SIGKILL'),
    async [Symbol.asyncDispose]() {
      await end('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
