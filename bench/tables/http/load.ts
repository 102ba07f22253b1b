/**
 * The load: wrk where it is on the PATH, else autocannon; both report the same figures.
 *
 * wrk's script writes them as JSON itself, with the percentiles that its own summary leaves out.
 */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { ASKED } from '../../contenders/http/responses.ts'
import { BenchError } from '../../harness/errors.ts'
import { BENCH_FOLDER, DIST_FOLDER } from '../../harness/paths.ts'

/** The result of one run of the load. */
export interface Load {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  /** Responses that were not 2xx, and connections that failed. */
  readonly errors: number
  /** What wrk prints as Req/Sec of its threads: requests a second of each; absent with autocannon. */
  readonly perThread?: Readonly<Record<'mean' | 'sd' | 'max' | 'within', number>>
  /** Percent of the latencies within a deviation of their mean; absent with autocannon. */
  readonly within?: number
  /** Latencies in µs: mean, deviation, percentiles, greatest. */
  readonly us: Readonly<Record<'mean' | 'sd' | 'p50' | 'p75' | 'p90' | 'p99' | 'p99.9' | 'max', number>>
}

/** How the load is run. */
export interface LoadPlan {
  readonly threads: number
  readonly connections: number
  readonly seconds: number
  /** Words before the command, which pin it. */
  readonly prefix: readonly string[]
  /** Default `http`. */
  readonly scheme?: 'http' | 'https' | 'h2c'
}

const AUTOCANNON = 'autocannon 9.0.0'

/** Requests in one write of the pipelined section. */
const PIPELINED = 16

let chosen = 'auto'

/** Which load generator to use: `auto`, `wrk` or `autocannon`. */
export function chooseLoad(name: string): void {
  if (!['auto', 'wrk', 'autocannon'].includes(name)) {
    const expected = 'auto, wrk or autocannon'
    throw new BenchError('BAD_PARAMETER', { name: 'load', received: name, expected })
  }
  chosen = name
}

/** Name and version of the load generator here. */
export function loadName(): string {
  if (chosen === 'autocannon') return AUTOCANNON
  const { stdout = '' } = spawnSync('wrk', ['-v'], { encoding: 'utf8' })
  return /^wrk \S+/.exec(stdout ?? '')?.[0] ?? AUTOCANNON
}

/** Run it against a port. @throws {BenchError} `CONTENDER_DIED` without any response. */
export async function load(section: string, port: number, plan: LoadPlan): Promise<Load> {
  const found = loadName().startsWith('wrk')
    ? await wrk(section, port, plan)
    : await autocannon(section, port, plan)
  if (found.requests > 0 && found.errors === 0) return found
  const why = `${section}: ${found.requests} responses, ${found.errors} errors`
  throw new BenchError('CONTENDER_DIED', { contender: `port ${port}`, why })
}

async function wrk(section: string, port: number, plan: LoadPlan): Promise<Load> {
  const script = `${DIST_FOLDER}/http-${section.replaceAll(' ', '-')}.lua`
  mkdirSync(DIST_FOLDER, { recursive: true })
  writeFileSync(script, luaFor(section))
  const words = [
    `-t${plan.threads}`,
    `-c${plan.connections}`,
    `-d${plan.seconds}s`,
    '--latency',
    '-s',
    script,
  ]
  const [command, ...rest] = [...plan.prefix, 'wrk', ...words, urlOf(port, section, plan)]
  const { stdout } = await promisify(execFile)(command, rest)
  const json = /^JSON (.*)$/m.exec(stdout)?.[1]
  if (json !== undefined) return { ...(JSON.parse(json) as Load), ...threadStats(stdout) }
  throw new BenchError('CONTENDER_DIED', { contender: 'wrk', why: stdout.slice(-300) })
}

/** The lines of wrk's own summary: name, mean, deviation, greatest, percent within a deviation. */
export function threadStats(summary: string): Pick<Load, 'perThread' | 'within'> {
  const line = (name: string): string[] | undefined =>
    new RegExp(`^ *${name} +(\\S+) +(\\S+) +(\\S+) +(\\S+)%$`, 'm').exec(summary)?.slice(1)
  const count = (text: string): number =>
    Number.parseFloat(text) * ({ k: 1e3, M: 1e6 }[text.at(-1) as 'k' | 'M'] ?? 1)
  const [latency, requests] = [line('Latency'), line('Req/Sec')]
  if (latency === undefined || requests === undefined) return {}
  const [mean, sd, max, within] = requests.map(count)
  return { perThread: { mean, sd, max, within }, within: Number(latency[3]) }
}

function urlOf(port: number, section: string, { scheme = 'http' }: LoadPlan): string {
  return `${scheme}://127.0.0.1:${port}${ASKED[section].path}`
}

function luaFor(section: string): string {
  const { path, body } = ASKED[section]
  const request =
    body === undefined
      ? ''
      : `wrk.method = "POST"\nwrk.body = [==[${body}]==]\nwrk.headers["content-type"] = "application/json"\n`
  const pipelined = `function init(args)
  local r = {}
  for i = 1, ${PIPELINED} do r[i] = wrk.format("GET", "${path}") end
  all = table.concat(r)
end
function request() return all end
`
  return `${request}${section.endsWith('pipelined') ? pipelined : ''}
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('JSON {"requests":%d,"seconds":%.6f,"bytes":%d,"errors":%d,' ..
    '"us":{"mean":%.1f,"sd":%.1f,"p50":%d,' ..
    '"p75":%d,"p90":%d,"p99":%d,"p99.9":%d,"max":%d}}\\n', summary.requests, summary.duration / 1e6,
    summary.bytes, e.connect + e.read + e.write + e.status + e.timeout, latency.mean, latency.stdev,
    latency:percentile(50), latency:percentile(75), latency:percentile(90), latency:percentile(99),
    latency:percentile(99.9), latency.max))
end
`
}

interface Cannon {
  readonly duration: number
  readonly errors: number
  readonly non2xx: number
  readonly requests: { readonly total: number }
  readonly throughput: { readonly total: number }
  readonly latency: Readonly<Record<string, number>>
}

async function autocannon(section: string, port: number, plan: LoadPlan): Promise<Load> {
  const { body } = ASKED[section]
  const words = ['-j', '-n', '-c', String(plan.connections), '-d', String(plan.seconds)]
  if (section.endsWith('pipelined')) words.push('-p', String(PIPELINED))
  if (body !== undefined) words.push('-m', 'POST', '-b', body, '-H', 'content-type=application/json')
  const program = `${BENCH_FOLDER}/node_modules/autocannon/autocannon.js`
  const [command, ...rest] = [...plan.prefix, process.execPath, program, ...words, urlOf(port, section, plan)]
  const { stdout } = await promisify(execFile)(command, rest, { maxBuffer: 2 ** 24 })
  const { duration, errors, non2xx, requests, throughput, latency } = JSON.parse(stdout) as Cannon
  const us = (name: string): number => latency[name] * 1000
  return {
    requests: requests.total,
    seconds: duration,
    bytes: throughput.total,
    errors: errors + non2xx,
    us: {
      mean: us('mean'),
      sd: us('stddev'),
      p50: us('p50'),
      p75: us('p75'),
      p90: us('p90'),
      p99: us('p99'),
      'p99.9': us('p99_9'),
      max: us('max'),
    },
  }
}
