/**
 * Servers of the http table as processes: started on core 0, checked, measured from /proc, ended.
 *
 * All are up during the whole run; one that nobody asks costs nothing.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { ASKED } from '../../contenders/http/responses.ts'
import { cpuSeconds } from '../../harness/cpu.ts'
import { BenchError } from '../../harness/errors.ts'
import { compiled } from '../../harness/floor.ts'
import { BENCH_FOLDER, DIST_FOLDER, PACKAGE_FOLDER } from '../../harness/paths.ts'

/** The floor's name. */
export const C_FLOOR = 'C epoll'
/** hyper's name. */
export const HYPER = 'hyper'
/** Those of servers with TLS, all with the certificate of {@link writeCertificate}. */
export const TLS_CORESPUN = 'corespun with TLS'
export const TLS_HYPER = 'hyper with rustls'
export const TLS_NODE = 'node:https'
const SECURE = [TLS_CORESPUN, TLS_HYPER, TLS_NODE]
/** Those of servers that are asked over HTTP/2, by prior knowledge. */
export const H2_CORESPUN = 'corespun over HTTP/2'
export const H2_HYPER = 'hyper over HTTP/2'
export const H2_NODE = 'node:http2'
const OF_HTTP2 = [H2_CORESPUN, H2_HYPER, H2_NODE]
/** Certificate and key of those, in PEM. */
const CERTIFICATE = ['cert', 'key'].map((name) => `${DIST_FOLDER}/tls-${name}.pem`)
/** That of the command with one worker, and with V8's parallel collector. */
export const SERVE = 'corespun serve'
export const SERVE_PARALLEL = 'corespun serve --parallel-gc'
/** Those of table observe: Corespun once more, and with all that a program can turn on to be looked into. */
export const AGAIN = 'corespun, again'
export const OBSERVED = 'corespun, observed'
/** That of uWebSockets.js. */
export const UWS = 'uWebSockets.js'
/** Bun, where its package is for this platform. */
export const BUN = `${BENCH_FOLDER}/node_modules/@oven/bun-linux-x64/bin/bun`
const DENO = `${BENCH_FOLDER}/node_modules/@deno/linux-x64-glibc/deno`
const READY_MS_MAX = 15_000

/** A running server. */
export class Server {
  readonly name: string
  readonly port: number
  readonly scheme: 'http' | 'https' | 'h2c'
  readonly #process: ChildProcess

  constructor(name: string, port: number, [command, ...words]: readonly string[]) {
    this.name = name
    this.port = port
    this.scheme = OF_HTTP2.includes(name) ? 'h2c' : SECURE.includes(name) ? 'https' : 'http'
    this.#process = spawn(command, words, { stdio: ['ignore', 'ignore', 'inherit'] })
    this.#process.on('error', () => {}) // seen by `ready`, which then waits in vain
  }

  /** Waits until it responds. @throws {BenchError} `CONTENDER_DIED` when it does not. */
  async ready(): Promise<void> {
    const late = Date.now() + READY_MS_MAX
    while (Date.now() < late && this.#process.exitCode === null) {
      const response = await this.#get('/').catch(() => undefined)
      if (response?.status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new BenchError('CONTENDER_DIED', { contender: this.name, why: 'it does not respond' })
  }

  /** Compares its response with the expected one. @throws {BenchError} `WRONG_ANSWER`. */
  async check(section: string): Promise<void> {
    const { path, body, expected } = ASKED[section]
    const init =
      body === undefined ? {} : { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    const { status, received } = await this.#get(path, init)
    if (status === 200 && received === expected) return
    const work = `${section}, status ${status}`
    throw new BenchError('WRONG_ANSWER', {
      contender: this.name,
      work,
      got: received,
      expected,
    })
  }

  async #get(
    path: string,
    init: RequestInit = {},
  ): Promise<{ status: number | undefined; received: string }> {
    if (this.scheme === 'h2c') return this.#getOverHttp2(path)
    const url = `${this.scheme}://127.0.0.1:${this.port}${path}`
    if (this.scheme === 'http') {
      const response = await fetch(url, init)
      return { status: response.status, received: await response.text() }
    }
    const sent = https.get(url, { rejectUnauthorized: false, agent: false })
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: response.statusCode, received: await text(response) }
  }

  async #getOverHttp2(path: string): Promise<{ status: number | undefined; received: string }> {
    const session = http2.connect(`http://127.0.0.1:${this.port}`)
    session.on('error', () => {}) // the request reports it
    try {
      const sent = session.request({ ':path': path })
      const [headers] = (await once(sent, 'response')) as [http2.IncomingHttpHeaders & { ':status': number }]
      return { status: headers[':status'], received: await text(sent) }
    } finally {
      session.destroy()
    }
  }

  /** CPU seconds of the process and its threads so far. */
  get cpuSeconds(): number {
    return cpuSeconds(this.#process.pid!)
  }

  /** Resident memory, MB. */
  get rssMb(): number {
    const line = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.#process.pid}/status`, 'utf8'))
    return Number(line?.[1] ?? 0) / 1024
  }

  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.pid === undefined) return
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }
}

/** Make the certificate of the servers with TLS: ECDSA on P-256, for this machine. */
export async function writeCertificate(): Promise<void> {
  const { developmentTls } = await import('corespun/http')
  const { cert, key } = await developmentTls()
  mkdirSync(DIST_FOLDER, { recursive: true })
  for (const [at, pem] of [cert, key].entries()) writeFileSync(CERTIFICATE[at], pem, { mode: 0o600 })
}

/** How each contender is started; `undefined`: it cannot be here, and `skip` receives the reason. */
export function commandOf(
  name: string,
  port: number,
  skip: (what: string, why: string) => void,
): readonly string[] | undefined {
  if (name === C_FLOOR) return cFloor(port, skip)
  if (name === HYPER) return hyper(name, [String(port)], skip)
  if (name === H2_HYPER) return hyper(name, [String(port), 'h2'], skip)
  if (name === TLS_HYPER) return hyper(name, [String(port), ...CERTIFICATE], skip)
  if (name === 'bun' || name === 'hono on bun') {
    if (existsSync(BUN)) return [BUN, `${DIST_FOLDER}/contenders/http/bun.js`, name, String(port)]
    skip(name, 'no Bun for this platform in bench/node_modules')
    return undefined
  }
  if (name === 'deno' || name === 'hono on deno') {
    const how = ['run', '--quiet', '--no-config', '--node-modules-dir=manual', '-A']
    const program = `${DIST_FOLDER}/contenders/http/deno.js`
    if (existsSync(DENO)) return [DENO, ...how, program, name, String(port)]
    skip(name, 'no Deno for this platform in bench/node_modules')
    return undefined
  }
  if (name === SERVE || name === SERVE_PARALLEL) return serve(name, port)
  if (name === UWS && process.env['CORESPUN_BENCH_UWS'] === undefined) {
    skip(name, 'not in the npm registry: CORESPUN_BENCH_UWS names the folder it is installed in')
    return undefined
  }
  const program = `${DIST_FOLDER}/contenders/http/server.js`
  return [process.execPath, program, name, String(port), ...(SECURE.includes(name) ? CERTIFICATE : [])]
}

function serve(name: string, port: number): readonly string[] {
  const cli = `${PACKAGE_FOLDER}/lib/cli/main.js`
  const words = ['serve', `${DIST_FOLDER}/contenders/http/app.js`, '--port', String(port), '-w', '1', '-q']
  return [process.execPath, cli, ...words, ...(name === SERVE ? [] : ['--parallel-gc'])]
}

/** Compiled by its own lock, once for each state of its sources. */
function hyper(
  name: string,
  args: readonly string[],
  skip: (what: string, why: string) => void,
): readonly string[] | undefined {
  const words = ['build', '--release', '--locked', '--quiet', '--target-dir', `${DIST_FOLDER}/hyper`]
  const built = spawnSync('cargo', words, { encoding: 'utf8', cwd: `${BENCH_FOLDER}/floor/hyper` })
  if (built.status === 0) return [`${DIST_FOLDER}/hyper/release/corespun-bench-hyper`, ...args]
  const why = built.error === undefined ? `cargo failed: ${built.stderr.split('\n')[0]}` : 'no cargo'
  skip(name, why)
  return undefined
}

function cFloor(port: number, skip: (what: string, why: string) => void): readonly string[] | undefined {
  const binary = compiled('http', C_FLOOR, skip)
  return binary === undefined ? undefined : [binary, String(port)]
}
