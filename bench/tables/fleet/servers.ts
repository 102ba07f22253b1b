/**
 * The servers of tables `fleet` and `jobs`: NATS, Redis and Postgres, on loopback or a socket, in folders
 * that go with them.
 *
 * The programs of the first two are those of test/fleet/servers.mjs, that of Postgres is Debian's; one that
 * cannot be had leaves its contenders out.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { BenchError } from '../../harness/errors.ts'
import { PACKAGE_FOLDER } from '../../harness/paths.ts'

/** A server that runs. */
export interface Running {
  readonly url: string
  readonly pid: number
  end(): Promise<void>
}

type Program = 'nats-server' | 'redis-server'
interface Programs {
  serverProgram(name: Program, skip: (why: string) => void): Promise<string | undefined>
}

const READY = {
  'nats-server': 'Server is ready',
  'redis-server': 'Ready to accept connections',
  postgres: 'database system is ready to accept connections',
}

/**
 * When files are synced: once a second, so that what is confirmed outlives a kill of the server; or before it
 * is confirmed, so that it outlives a power cut.
 */
export type Sync = 'everysec' | 'always'

const WORDS = {
  'nats-server': (port: string, folder: string, _: Sync) => {
    const config = join(folder, 'server.conf')
    writeFileSync(config, `jetstream { store_dir: ${JSON.stringify(folder)}, sync_interval: "1s" }\n`)
    return ['-a', '127.0.0.1', '-p', port, '-c', config]
  },
  'redis-server': (port: string, folder: string, sync: Sync) => {
    const file = ['--save', '', '--appendonly', 'yes', '--appendfsync', sync]
    return ['--port', port, '--bind', '127.0.0.1', '--dir', folder, ...file]
  },
}

/** Start it; `undefined` where its program cannot be had. @throws {BenchError} `CONTENDER_DIED`. */
export async function startServer(
  name: Program,
  skip: (what: string, why: string) => void,
  sync: Sync = 'everysec',
): Promise<Running | undefined> {
  const path: string = `${PACKAGE_FOLDER}/test/fleet/servers.mjs`
  const { serverProgram } = (await import(path)) as Programs
  const program = await serverProgram(name, (why) => skip(name, why))
  if (program === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-fleet-'))
  const port = await freePort()
  const child = spawn(program, WORDS[name](String(port), folder, sync), { stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  await ready(name, child)
  const scheme = name === 'nats-server' ? 'nats' : 'redis'
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    pid: child.pid!,
    async end() {
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const DEBIAN = '/usr/lib/postgresql'
const NOBODY = 65_534

/**
 * Start a Postgres with its defaults, which sync what is confirmed; `undefined` without its programs. It
 * refuses to run as root, so then it runs as nobody.
 */
export async function startPostgres(skip: (what: string, why: string) => void): Promise<Running | undefined> {
  const majors = existsSync(DEBIAN) ? readdirSync(DEBIAN) : []
  const newest = majors.sort((one, other) => Number(other) - Number(one))[0]
  const programs = process.env['CORESPUN_POSTGRES'] ?? join(DEBIAN, newest ?? '', 'bin')
  if (!existsSync(join(programs, 'initdb'))) {
    skip('Postgres', `it is not in ${programs}; CORESPUN_POSTGRES names its folder of programs`)
    return undefined
  }
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-postgres-'))
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  if (user.uid !== undefined) chownSync(folder, user.uid, user.uid)
  const data = join(folder, 'data')
  const words = ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C']
  await promisify(execFile)(join(programs, 'initdb'), words, { ...user, cwd: folder })
  const settings = ['-c', 'listen_addresses=', '-c', 'max_connections=200']
  const child = spawn(join(programs, 'postgres'), ['-D', data, '-k', folder, ...settings], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  await ready('postgres', child)
  return {
    url: `postgres://postgres@/postgres?host=${encodeURIComponent(folder)}`,
    pid: child.pid!,
    async end() {
      child.kill('SIGQUIT')
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

async function ready(name: keyof typeof READY, child: ChildProcess): Promise<void> {
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
