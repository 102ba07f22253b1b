/**
 * Profiles of the example service under load: how much of its CPU time has the name of a route or a task.
 *
 * The server and `corespun profile` are the commands, as users run them. The share is computed anew from the
 * file, and must be the one that the command prints.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BenchError, checkAnswer } from '../../harness/errors.ts'
import { PACKAGE_FOLDER } from '../../harness/paths.ts'

const MAIN = `${PACKAGE_FOLDER}/lib/cli/main.js`
const APP = `${PACKAGE_FOLDER}/examples/service/app.ts`
const CLIENTS = 4
/** V8 compiles the service meanwhile, and the server opens its control socket. */
const LEAD_MS = 2000
const START_MS_MAX = 30_000
const JSON_TYPE = { 'content-type': 'application/json' }

interface Frame {
  readonly id: number
  readonly callFrame: { readonly functionName: string }
  readonly children?: readonly number[]
}

interface Profile {
  readonly nodes: readonly Frame[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/**
 * Serve, ask, profile for so long. Returns the share of CPU time with a label, in percent.
 * @throws {BenchError} `CONTENDER_DIED`; `WRONG_ANSWER` for a response, or a share that is not the file’s.
 */
export async function namedShare(seconds: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-'))
  const env = { ...process.env, XDG_RUNTIME_DIR: folder }
  const server = spawn(process.execPath, [MAIN, 'serve', APP, '--port', '0'], {
    cwd: PACKAGE_FOLDER,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(server, 'exit')
  const load = new AbortController()
  try {
    const url = await urlOf(server, exited)
    const text = readFileSync(APP, 'utf8')
    const clients = Array.from({ length: CLIENTS }, (_, client) => ask(url, text, client, load.signal))
    await socketIn(folder)
    await sleep(LEAD_MS)
    const file = join(folder, 'service.cpuprofile')
    const printed = await profiled(seconds, file, env)
    load.abort()
    await Promise.all(clients)
    const found = shareOf(JSON.parse(readFileSync(file, 'utf8')) as Profile)
    const isSame = Math.abs(Number(printed) - found) < 0.1
    const work = `its share, which is ${found.toFixed(2)} in its file`
    checkAnswer({ contender: 'corespun profile', work, got: isSame || printed, expected: true })
    return found
  } finally {
    load.abort()
    server.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true })
  }
}

async function urlOf(server: ChildProcess, exited: Promise<unknown>): Promise<string> {
  let out = ''
  const late = setTimeout(() => server.kill('SIGKILL'), START_MS_MAX)
  const found = new Promise<string>((resolve) =>
    server.stdout!.on('data', (bytes: Buffer) => {
      const [url] = /http:\/\/[\d.:]+/.exec((out += bytes)) ?? []
      if (url !== undefined) resolve(url)
    }),
  )
  const url = await Promise.race([found, exited.then(() => undefined)])
  clearTimeout(late)
  if (url !== undefined) return url
  throw new BenchError('CONTENDER_DIED', { contender: 'corespun serve', why: 'it did not start' })
}

async function socketIn(folder: string): Promise<void> {
  const late = performance.now() + START_MS_MAX
  for (;;) {
    if (readdirSync(folder, { recursive: true }).some((name) => String(name).endsWith('.sock'))) return
    if (performance.now() > late)
      throw new BenchError('CONTENDER_DIED', { contender: 'corespun serve', why: 'it has no control socket' })
    await sleep(20)
  }
}

/** One client: a score of a text that none has asked for before, and the statistics. */
async function ask(url: string, text: string, client: number, signal: AbortSignal): Promise<void> {
  for (let count = 0; !signal.aborted; count += 1) {
    const body = JSON.stringify({ name: 'app.ts', text: `${text}\n// ${client} ${count}` })
    const scored = await fetch(`${url}/api/score`, { method: 'POST', body, headers: JSON_TYPE })
    const { score, cached } = (await scored.json()) as { score?: { parsed: boolean }; cached?: boolean }
    const got = [scored.status, score?.parsed, cached]
    checkAnswer({ contender: 'the service', work: 'a score', got, expected: [200, true, false] })
    const stats = await fetch(`${url}/api/stats`)
    await stats.text()
    checkAnswer({ contender: 'the service', work: 'its statistics', got: stats.status, expected: 200 })
  }
}

/** Returns the share that the command prints. */
async function profiled(seconds: number, file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const words = [MAIN, 'profile', 'app', '--seconds', String(seconds), '--output', file]
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes))
  const [code] = (await once(child, 'close')) as [number | null]
  const [, share] = /([\d.]+) % of it with a label/.exec(errors) ?? []
  if (code === 0 && share !== undefined) return share
  throw new BenchError('CONTENDER_DIED', { contender: 'corespun profile', why: errors.trim() })
}

/** Of the samples that are not idle, in time, how many have a label: the frame below that of their thread. */
function shareOf({ nodes, samples, timeDeltas }: Profile): number {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.functionName]))
  let [all, named] = [0, 0]
  for (const [index, sample] of samples.entries()) {
    const us = timeDeltas[index + 1] ?? 0
    if (names.get(sample) === '(idle)') continue
    all += us
    const stack: (string | undefined)[] = []
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id))
      stack.unshift(names.get(id))
    const [, , label] = stack
    if (/^\[.*\]$/.test(label ?? '')) named += us
  }
  return (named / all) * 100
}
