/**
 * Table `http`: what a request costs, beside a bare epoll server in C, node:http, fastify, hono and Bun.
 *
 * CPU per request ranks the fast ones, since the load generator ends before they do. The server is pinned to
 * core 0 and the load to core 1; one section runs the seed's own command unpinned.
 */
import { BenchError } from '../harness/errors.ts'
import { Samples } from '../harness/rounds.ts'
import { type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { load, type LoadPlan, loadName } from './http/load.ts'
import { C_FLOOR, commandOf, Server } from './http/servers.ts'

const PINNED = 'server on core 0, load on core 1'
const FREE = 'both on all cores'
const PORT = 39_000
const ROUTED = ['skein', 'skein, node core', 'node:http', 'fastify', 'bun']
const HONO = ['hono on skein', 'hono on skein, node core', 'hono on node:http', 'hono on bun']

/** Who is asked what. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  hello: [C_FLOOR, ...ROUTED],
  user: [C_FLOOR, ...ROUTED],
  constant: [C_FLOOR, ...ROUTED],
  pipelined: [C_FLOOR, ...ROUTED],
  echo: ROUTED,
  work: ROUTED,
  'hono hello': [C_FLOOR, ...HONO],
  'hono user': [C_FLOOR, ...HONO],
}
/** Cells of the seed's table that the row of the best rival answers. */
const SEED = 'http/hello/zio-http-zing'

async function run(context: Context): Promise<Row[]> {
  const sections = context.text('sections').split(',')
  const unknown = sections.find((section) => SECTIONS[section] === undefined && section !== 'seed')
  if (unknown !== undefined) {
    const expected = `of ${Object.keys(SECTIONS).join(',')},seed`
    throw new BenchError('BAD_PARAMETER', { name: 'sections', received: unknown, expected })
  }
  const wanted = context.text('contenders')
  const isWanted = (name: string): boolean => wanted === 'all' || wanted.split(',').includes(name)
  const rows: Row[] = []
  const names = new Set(sections.flatMap((section) => (SECTIONS[section] ?? []).filter(isWanted)))
  await withServers([...names], ['taskset', '-c', '0'], context, async (servers) => {
    for (const section of sections.filter((name) => name !== 'seed')) {
      const asked = servers.filter(({ name }) => SECTIONS[section]!.includes(name))
      rows.push(...(await measureOrSkip(section, asked, context)))
    }
  })
  if (sections.includes('seed')) {
    await withServers(['skein', C_FLOOR].filter(isWanted), [], context, async (servers) => {
      rows.push(...(await seed(servers, context)))
    })
  }
  return rows
}

/** Start, let `body` use, and end them all. */
async function withServers(
  names: readonly string[],
  prefix: readonly string[],
  context: Context,
  body: (servers: readonly Server[]) => Promise<void>,
): Promise<void> {
  const servers: Server[] = []
  try {
    for (const [at, name] of names.entries()) {
      const command = commandOf(name, PORT + at, context.skip)
      if (command !== undefined) servers.push(new Server(name, PORT + at, [...prefix, ...command]))
    }
    for (const server of servers) await server.ready()
    await body(servers)
  } finally {
    await Promise.all(servers.map((server) => server.end()))
  }
}

/** A section in which a server dies is left out, by name; a wrong answer ends everything. */
async function measureOrSkip(section: string, servers: readonly Server[], context: Context): Promise<Row[]> {
  try {
    return await measure(section, servers, context)
  } catch (error) {
    if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
    context.skip(`section ${section}`, error.message.split('\n').slice(0, 3).join(' '))
    return []
  }
}

async function measure(section: string, servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  const plan: LoadPlan = {
    threads: 1,
    connections: context.number('connections'),
    seconds: context.number('slice-s'),
    prefix: ['taskset', '-c', '1'],
  }
  for (const server of servers) {
    await server.check(section)
    await load(section, server.port, { ...plan, seconds: 1 })
  }
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const server of servers) {
      context.say(`${section}, ${server.name}: round ${round + 1}`)
      samples.add(server.name, await slice(section, server, plan))
    }
  }
  return rowsOf(section, samples, PINNED)
}

async function slice(section: string, server: Server, plan: LoadPlan): Promise<Record<string, number>> {
  const before = server.cpuSeconds
  const { requests, seconds, bytes, us } = await load(section, server.port, plan)
  const cpu = ((server.cpuSeconds - before) / requests) * 100_000
  const mb = { 'transfer MB/s': bytes / seconds / 1e6, memory: server.rssMb }
  return { 'CPU per 100,000': cpu, 'requests/s': requests / seconds, ...us, ...mb }
}

function rowsOf(section: string, samples: Samples, condition: string): Row[] {
  const shape = { section, condition, threads: 0 } as const
  const row = (figure: string, unit: string, better: 'lower' | 'higher'): Row[] =>
    samples.rows({ ...shape, row: figure, figure, unit, better, against: C_FLOOR })
  return [
    ...row('CPU per 100,000', 's', 'lower'),
    ...row('requests/s', '1/s', 'higher'),
    ...['mean', 'sd', 'p50', 'p75', 'p90', 'p99', 'p99.9', 'max'].flatMap((name) => row(name, 'µs', 'lower')),
    ...row('transfer MB/s', 'MB/s', 'higher'),
    ...row('memory', 'MB', 'lower'),
  ]
}

/** The command of the seed, on whatever cores there are. */
async function seed(servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  const plan: LoadPlan = { threads: 5, connections: 100, seconds: context.quick ? 2 : 10, prefix: [] }
  for (let turn = 0; turn < (context.quick ? 1 : 5); turn += 1) {
    for (const server of servers) {
      context.say(`seed, ${server.name}: run ${turn + 1}`)
      const { requests, seconds, us } = await load('hello', server.port, plan)
      const { mean: avg, ...others } = us
      samples.add(server.name, { rps: requests / seconds, requests, avg, ...others })
    }
  }
  return ['rps', 'requests', 'p50', 'p75', 'p90', 'p99', 'avg', 'sd', 'max'].flatMap((figure) =>
    samples.rows({
      section: 'seed',
      row: figure,
      figure,
      condition: FREE,
      threads: 0,
      unit: figure === 'rps' ? '1/s' : figure === 'requests' ? '' : 'µs',
      better: figure === 'rps' || figure === 'requests' ? 'higher' : 'lower',
      seeds: { skein: `${SEED}/${figure}` },
    }),
  )
}

/** Bars of Skein against others: section, its contender, the other, the factor. */
const BARS = [
  ['hello', 'skein', C_FLOOR, 1.15],
  ['user', 'skein', C_FLOOR, 1.2],
  ['constant', 'skein', C_FLOOR, 1.1],
  ['pipelined', 'skein', C_FLOOR, 2],
  ['hello', 'skein', 'bun', 1],
  ['user', 'skein', 'bun', 1],
  ['echo', 'skein', 'bun', 1],
  ['hono hello', 'hono on skein', 'hono on bun', 1],
  ['hono user', 'hono on skein', 'hono on bun', 1],
  ['hono hello', 'hono on skein', 'hono on node:http', 0.4],
  ['hono user', 'hono on skein', 'hono on node:http', 0.4],
] as const

function verdicts(rows: readonly Row[]): Verdict[] {
  return BARS.map(([section, ours, other, factor]) => {
    const of = (contender: string): number | undefined =>
      findRow(rows, { section, row: 'CPU per 100,000', contender })?.median
    const [own, theirs] = [of(ours), of(other)]
    const bar = `${section}: CPU of ${ours} at most ${factor} × ${other}`
    if (own === undefined || theirs === undefined) return { bar, measured: 'not measured', holds: undefined }
    const measured = `${own.toFixed(3)} s against ${theirs.toFixed(3)} s, ${(own / theirs).toFixed(2)} ×`
    return { bar, measured, holds: own <= factor * theirs }
  })
}

const table: Table = {
  name: 'http',
  title: 'A request over HTTP/1.1',
  definitions: {
    load: `${loadName()}; keep-alive connections, one thread on core 1, server alone on core 0.`,
    'CPU per 100,000': 'CPU seconds of the server, user and system, over requests, times 100,000.',
    hello: 'GET / answers 13 bytes of text.',
    user: 'GET /user/7 answers JSON made for each request.',
    echo: 'POST of some 1 KiB of JSON: parsed, made again, answered.',
    constant: 'GET of a path whose answer never changes, where a server knows such a thing.',
    pipelined: 'hello, 16 requests in one write.',
    work: 'A handler that keeps its thread for 1 ms.',
    'hono hello, hono user': 'The same two by one hono app, unchanged, on each server.',
    seed: "The seed's own command: wrk -t5 -c100 -d10s --latency, five runs of one process, unpinned.",
  },
  parameters: {
    sections: {
      value: [...Object.keys(SECTIONS), 'seed'].join(','),
      quick: 'hello,user',
      doc: 'which, by comma',
    },
    contenders: { value: 'all', quick: `${C_FLOOR},skein,node:http,bun`, doc: 'which servers, by comma' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
    connections: { value: 100, doc: 'connections of the load' },
  },
  run,
  verdicts,
}

export default table
