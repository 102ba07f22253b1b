/**
 * Table `h2`: what a request costs over HTTP/2 without TLS, beside hyper's and node:http2.
 *
 * The client is h2load of nghttp2, on core 1; it ends later than the fast servers, so CPU per request ranks.
 */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { HELLO } from '../contenders/http/responses.ts'
import { BenchError } from '../harness/errors.ts'
import { Samples } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { LOAD_DEFINITIONS, PINNED, withServers } from './http.ts'
import { H2_CORESPUN, H2_HYPER, H2_NODE, type Server } from './http/servers.ts'
import { CPU } from './http/verdicts.ts'

const CONTENDERS = [H2_CORESPUN, H2_HYPER, H2_NODE]
/** Connections, and requests on their way on each. */
const SECTIONS: Readonly<Record<string, readonly [connections: number, streams: number]>> = {
  hello: [10, 10],
  'one stream each': [100, 1],
}

/** Most CPU of a request, against hyper and against node:http2. */
const HYPER_FACTOR = 1.15
const NODE_FACTOR = 0.35

async function run(context: Context): Promise<Row[]> {
  const sections = chosenOf(context, 'sections', Object.keys(SECTIONS))
  const { status } = spawnSync('h2load', ['--version'])
  if (status !== 0) {
    context.skip('table h2', 'no h2load on the PATH (Debian: nghttp2-client)')
    return []
  }
  const rows: Row[] = []
  await withServers(CONTENDERS, ['taskset', '-c', '0'], context, async (servers) => {
    for (const section of sections) rows.push(...(await measure(section, servers, context)))
  })
  return rows
}

async function measure(section: string, servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  for (const server of servers) {
    await server.check('hello')
    await load(section, server, 1)
  }
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const server of servers) {
      context.progress(`${section}, ${server.name}: round ${round + 1}`)
      const before = server.cpuSeconds
      const { requests, perSecond } = await load(section, server, context.number('slice-s'))
      const cpu = ((server.cpuSeconds - before) / requests) * 100_000
      samples.add(server.name, { [CPU]: cpu, 'requests/s': perSecond, memory: server.rssMb })
    }
  }
  const shape = { section, condition: PINNED, threads: 0, against: H2_HYPER } as const
  const row = (figure: string, unit: string, better: 'lower' | 'higher'): Row[] =>
    samples.rows({ ...shape, row: figure, figure, unit, better })
  return [...row(CPU, 's', 'lower'), ...row('requests/s', '1/s', 'higher'), ...row('memory', 'MB', 'lower')]
}

/** @throws {BenchError} `CONTENDER_DIED` unless all responses were 200 and had the body's length. */
async function load(
  section: string,
  { name, port }: Server,
  seconds: number,
): Promise<{ requests: number; perSecond: number }> {
  const [connections, streams] = SECTIONS[section]
  const words = ['-t1', `-c${connections}`, `-m${streams}`, `-D${seconds}`, `http://127.0.0.1:${port}/`]
  const { stdout } = await promisify(execFile)('taskset', ['-c', '1', 'h2load', ...words])
  const perSecond = Number(/^finished in .*, ([\d.]+) req\/s/m.exec(stdout)?.[1])
  const failed = Number(/, (\d+) failed, /.exec(stdout)?.[1])
  const requests = Number(/^status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx/m.exec(stdout)?.[1])
  const bytes = Number(/\((\d+)\) data$/m.exec(stdout)?.[1])
  // Requests that were on their way at the end have sent a part of their response.
  const isWhole = Math.abs(bytes - requests * HELLO.length) <= connections * streams * HELLO.length
  if (requests > 0 && failed === 0 && isWhole) return { requests, perSecond }
  throw new BenchError('CONTENDER_DIED', { contender: name, why: `${section}: ${stdout.slice(-600)}` })
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return Object.keys(SECTIONS).flatMap((section) => {
    const of = (contender: string): Row | undefined => findRow(rows, { section, row: CPU, contender })
    const ratio = (rival: string, factor: number): Verdict =>
      judgeRatio(
        `${section}: CPU of a request at most ${factor} × ${rival}`,
        [of(H2_CORESPUN), of(rival)],
        (times) => times <= factor,
      )
    return [ratio(H2_HYPER, HYPER_FACTOR), ratio(H2_NODE, NODE_FACTOR)]
  })
}

export default {
  name: 'h2',
  title: 'A request over HTTP/2',
  definitions: {
    [CPU]: LOAD_DEFINITIONS[CPU],
    load: 'h2load without TLS, by prior knowledge, one thread on core 1, server alone on core 0.',
    hello: 'GET / returns 13 bytes of text; 10 connections with 10 requests on their way on each.',
    'one stream each': 'The same with one request on its way on each of 100 connections.',
  },
  parameters: {
    sections: { value: Object.keys(SECTIONS).join(','), doc: 'which, by comma' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
  },
  run,
  verdicts,
} satisfies Table
