/**
 * The servers of table `fleet`: NATS and Redis, on loopback, free ports and folders that go with them.
 *
 * Their programs are those of test/fleet/servers.mjs; one that cannot be had leaves its contenders out.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BenchError } from '../../harness/errors.ts'
import { PACKAGE_FOLDER } from '../../harness/paths.ts'

/** A server that runs. */
export interface Running {
  readonly url: string
  end(): Promise<void>
}

type Program = 'nats-server' | 'redis-server'
interface Programs {
  serverProgram(name: Program, skip: (why: string) => void): Promise<string | undefined>
}

const READY = { 'nats-server': 'Server is ready', 'redis-server': 'Ready to accept connections' }

/** Both keep what they confirm when their process is killed, and sync their files once a second. */
const WORDS = {
  'nats-server': (port: string, folder: string) => {
    const config = join(folder, 'server.conf')
    writeFileSync(config, `jetstream { store_dir: ${JSON.stringify(folder)}, sync_interval: "1s" }\n`)
    return ['-a', '127.0.0.1', '-p', port, '-c', config]
  },
  'redis-server': (port: string, folder: string) => {
    const file = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec']
    return ['--port', port, '--bind', '127.0.0.1', '--dir', folder, ...file]
  },
}

/** Start it; `undefined` where its program cannot be had. @throws {BenchError} `CONTENDER_DIED`. */
export async function startServer(
  name: Program,
  skip: (what: string, why: string) => void,
): Promise<Running | undefined> {
  const path: string = `${PACKAGE_FOLDER}/test/fleet/servers.mjs`
  const { serverProgram } = (await import(path)) as Programs
  const program = await serverProgram(name, (why) => skip(name, why))
  if (program === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-fleet-'))
  const port = await freePort()
  const child = spawn(program, WORDS[name](String(port), folder), { stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  await ready(name, child)
  const scheme = name === 'nats-server' ? 'nats' : 'redis'
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    async end() {
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function ready(name: Program, child: ChildProcess): Promise<void> {
  const lines: string[] = []
  await new Promise<void>((resolve, reject) => {
    for (const output of [child.stdout!, child.stderr!])
      createInterface({ input: output }).on('line', (line) => {
        lines.push(line)
        if (line.includes(READY[name])) resolve()
      })
    child.once('exit', () =>
      reject(new BenchError('CONTENDER_DIED', { contender: name, why: lines.slice(-3).join(' ') })),
    )
  })
}
