/**
 * A Postgres of a test's own: on a socket in a folder that goes with it, without fsync where it is not about
 * crashes.
 *
 * The programs are those of the folder that CORESPUN_POSTGRES names (`npm test -- coverage` has one from
 * PyPI), or Debian's; without any these tests are skipped. Postgres refuses to run as root, so then it runs
 * as nobody.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { after } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'

const DEBIAN = '/usr/lib/postgresql'
const majors = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((one, other) => Number(other) - Number(one)) : []
const PROGRAMS =
  process.env['CORESPUN_POSTGRES'] ??
  majors.map((major) => join(DEBIAN, major, 'bin')).find((folder) => existsSync(join(folder, 'initdb')))

/** The option `skip` of a test: why it cannot run here, or false. */
export const SKIP = PROGRAMS === undefined ? 'without Postgres; install the package postgresql' : false

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const AS = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
const run = promisify(execFile)

/** The programs, or a copy in `folder` where they lie below a folder of root's. */
function programsFor(folder: string): string {
  if (spawnSync(join(PROGRAMS!, 'postgres'), ['--version'], AS).status === 0) return PROGRAMS!
  // A wheel has libraries beside its package.
  const whole = resolve(PROGRAMS!, /[\\/]pgserver[\\/]pginstall[\\/]bin$/.test(PROGRAMS!) ? '../../..' : '..')
  const copy = join(folder, 'programs')
  cpSync(whole, copy, { recursive: true, verbatimSymlinks: true })
  return join(copy, relative(whole, PROGRAMS!))
}

export class PostgresServer {
  readonly folder: string
  readonly programs: string
  readonly #settings: readonly string[]
  #child: ChildProcess | undefined

  constructor(folder: string, settings: readonly string[]) {
    this.folder = folder
    this.programs = programsFor(folder)
    this.#settings = settings
  }

  /** As `connect` takes it. */
  url(database = 'postgres', user = 'postgres'): string {
    return `postgres://${user}@/${database}?host=${encodeURIComponent(this.folder)}`
  }

  async start(): Promise<void> {
    const settings = ['listen_addresses=', 'max_connections=200', ...this.#settings].flatMap((each) => [
      '-c',
      each,
    ])
    const args = ['-D', join(this.folder, 'data'), '-k', this.folder, ...settings]
    const child = spawn(join(this.programs, 'postgres'), args, {
      ...AS,
      cwd: this.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#child = child
    const lines: string[] = []
    child.stderr.on('data', (text) => lines.push(String(text)))
    for (;;) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`postgres did not start:\n${lines.join('')}`)
      const client = new pg.Client(this.url())
      client.on('error', () => {})
      try {
        await client.connect()
        return await client.end()
      } catch {
        await client.end().catch(() => {})
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  /** SIGKILL, as a crash would; its other processes notice that. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill(signal)
    await closed
  }

  /** Statements of an operator. */
  async sql(text: string, values: unknown[] = [], database?: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client(this.url(database))
    client.on('error', () => {})
    await client.connect()
    try {
      const results = await client.query(text, values)
      return results.rows as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }

  /** Without a checkpoint: nobody reads it again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGQUIT')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Start one. @param settings As `fsync=off`. */
export async function startServer(settings: readonly string[] = ['fsync=off']): Promise<PostgresServer> {
  const server = await makeServer(settings)
  await server.start()
  return server
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pg-'))
  if (isRoot) chownSync(folder, NOBODY, NOBODY)
  return folder
}

async function makeServer(settings: readonly string[]): Promise<PostgresServer> {
  const folder = newFolder()
  const args = [
    '-D',
    join(folder, 'data'),
    '-U',
    'postgres',
    '--auth=trust',
    '-E',
    'UTF8',
    '--locale=C',
    '-N',
  ]
  const server = new PostgresServer(folder, settings)
  await run(join(server.programs, 'initdb'), args, { ...AS, cwd: folder })
  return server
}

/** A primary, and a standby that has what is committed before that is confirmed. */
export async function startPair(): Promise<[primary: PostgresServer, standby: PostgresServer]> {
  const primary = await makeServer(['fsync=off', 'synchronous_standby_names=*'])
  const folder = newFolder()
  // Of one that has never run: it has all of its log yet.
  await run('cp', ['-a', join(primary.folder, 'data'), folder])
  const signal = join(folder, 'data', 'standby.signal')
  writeFileSync(signal, '')
  if (isRoot) chownSync(signal, NOBODY, NOBODY)
  const follows = `primary_conninfo=host=${primary.folder} user=postgres`
  const standby = new PostgresServer(folder, ['fsync=off', follows])
  await Promise.all([primary.start(), standby.start()])
  return [primary, standby]
}

/** One for the tests of a file. */
export function serverOfFile(settings?: readonly string[]): () => Promise<PostgresServer> {
  let server: Promise<PostgresServer> | undefined
  after(async () => (await server)?.[Symbol.asyncDispose]())
  return () => (server ??= startServer(settings))
}
