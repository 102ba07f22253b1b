/**
 * Table `http`: what a request costs, beside a bare epoll server in C, hyper, Bun, Deno, node:http, fastify,
 * and apps of hono, express and Effect before and after they moved to Corespun.
 *
 * CPU per request ranks the fast ones, since the load generator ends before they do. The server is pinned to
 * core 0 and the load to core 1; then every section is measured once more with both on all cores, and the
 * last ones only so, one with the seed's own command.
 */
import { BenchError } from '../harness/errors.ts'
import { Samples } from '../harness/rounds.ts'
import { type Context, type Row, type Table, chosenOf } from '../harness/table.ts'
import { chooseLoad, load, type LoadPlan, loadName } from './http/load.ts'
import { seed, SEED_CONTENDERS } from './http/seed.ts'
import { C_FLOOR, commandOf as serverCommand, HYPER, Server } from './http/servers.ts'
import { CPU, verdicts } from './http/verdicts.ts'

/** Condition of a run that is pinned. */
export const PINNED = 'server on core 0, load on core 1'
const FREE = 'both on all cores'
const PORT = 39_000
const ROUTED = ['corespun', 'node:http', 'fastify', HYPER, 'bun', 'deno']
const HONO = ['hono on corespun', 'hono on node:http', 'hono on bun', 'hono on deno']
const EXPRESS = ['express on corespun', 'express on node:http']
const EFFECT = ['effect on corespun', 'effect on node:http']
const CORES = ['corespun, one worker', 'corespun, two workers']

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
  'hono echo': HONO,
  'express hello': EXPRESS,
  'express user': EXPRESS,
  'express echo': EXPRESS,
  'effect hello': EFFECT,
  'effect user': EFFECT,
  'two cores': CORES,
  'two cores hello': [...CORES, C_FLOOR],
}
/** Sections whose servers and load always use all cores. */
const UNPINNED = ['two cores', 'two cores hello']
/** Ends the name of a section that is measured once more, with both on all cores. */
const ON_BOTH = ', both on all cores'

async function run(context: Context): Promise<Row[]> {
  const sections = chosenOf(context, 'sections', [...Object.keys(SECTIONS), 'seed'])
  const chosen = context.text('contenders')
  const isChosen = (name: string): boolean => chosen === 'all' || chosen.split(',').includes(name)
  chooseLoad(context.text('load'))
  const rows: Row[] = []
  const tables = sections.filter((name) => name !== 'seed')
  const isTwice = coresOf(context) === 'both'
  for (const unpinned of [false, true]) {
    const here = tables.filter((section) => UNPINNED.includes(section) === unpinned || (unpinned && isTwice))
    const names = new Set(here.flatMap((section) => (SECTIONS[section] ?? []).filter(isChosen)))
    await withServers([...names], unpinned ? [] : ['taskset', '-c', '0'], context, async (servers) => {
      for (const section of here) {
        const asked = servers.filter(({ name }) => SECTIONS[section].includes(name))
        rows.push(...(await measureOrSkip(section, asked, context, unpinned)))
      }
    })
  }
  if (sections.includes('seed')) {
    await withServers(SEED_CONTENDERS.filter(isChosen), [], context, async (servers) => {
      rows.push(...(await seed(servers, context)))
    })
  }
  return rows
}

/** The parameter `cores`. @throws {BenchError} `BAD_PARAMETER`. */
export function coresOf(context: Context): 'pinned' | 'both' {
  const cores = context.text('cores')
  if (cores === 'pinned' || cores === 'both') return cores
  throw new BenchError('BAD_PARAMETER', { name: 'cores', received: cores, expected: 'pinned or both' })
}

/** Start servers, let `body` use them, and end them all. */
export async function withServers(
  names: readonly string[],
  prefix: readonly string[],
  context: Context,
  body: (servers: readonly Server[]) => Promise<void>,
  commandOf = serverCommand,
): Promise<void> {
  const servers: Server[] = []
  try {
    for (const [at, name] of names.entries()) {
      const command = commandOf(name, PORT + at, context.skip)
      if (command !== undefined) servers.push(new Server(name, PORT + at, [...prefix, ...command]))
    }
    const ready: Server[] = []
    for (const server of servers) {
      if (await isReady(server, context)) ready.push(server)
    }
    await body(ready)
  } finally {
    await Promise.all(servers.map((server) => server.end()))
  }
}

/** Whether it responds; one that does not is left out, by name. */
async function isReady(server: Server, context: Context): Promise<boolean> {
  try {
    await server.ready()
    return true
  } catch (error) {
    if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
    context.skip(server.name, error.message.split('\n')[0])
    return false
  }
}

/**
 * A section in which a server dies is left out, by name; a wrong response ends everything.
 * @param against Whom ratios refer to.
 */
export async function measureOrSkip(
  section: string,
  servers: readonly Server[],
  context: Context,
  unpinned: boolean,
  against = C_FLOOR,
): Promise<Row[]> {
  try {
    return await measure(section, servers, context, unpinned, against)
  } catch (error) {
    if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
    context.skip(`section ${section}`, error.message.split('\n').slice(0, 3).join(' '))
    return []
  }
}

async function measure(
  section: string,
  servers: readonly Server[],
  context: Context,
  unpinned: boolean,
  against: string,
): Promise<Row[]> {
  const samples = new Samples()
  await addSamples(samples, section, servers, context, unpinned)
  const isPinned = !unpinned
  const name = isPinned || UNPINNED.includes(section) ? section : `${section}${ON_BOTH}`
  return rowsOf(name, samples, isPinned ? PINNED : FREE, against)
}

/** Measure each server in turn, in as many rounds as `context` has. */
export async function addSamples(
  samples: Samples,
  section: string,
  servers: readonly Server[],
  context: Context,
  unpinned: boolean,
): Promise<void> {
  const plan: LoadPlan = {
    threads: 1,
    connections: context.number('connections'),
    seconds: context.number('slice-s'),
    prefix: unpinned ? [] : ['taskset', '-c', '1'],
  }
  for (const server of servers) {
    await server.check(section)
    await load(section, server.port, { ...plan, seconds: 1, scheme: server.scheme })
  }
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const server of servers) {
      context.progress(`${section}, ${server.name}: round ${round + 1}`)
      samples.add(server.name, await slice(section, server, plan))
    }
  }
}

async function slice(section: string, server: Server, plan: LoadPlan): Promise<Record<string, number>> {
  const before = server.cpuSeconds
  const { requests, seconds, bytes, us } = await load(section, server.port, {
    ...plan,
    scheme: server.scheme,
  })
  const cpu = ((server.cpuSeconds - before) / requests) * 100_000
  const mb = { 'transfer MB/s': bytes / seconds / 1e6, memory: server.rssMb }
  return { [CPU]: cpu, 'requests/s': requests / seconds, ...us, ...mb }
}

/** The rows of a section that {@link addSamples} has measured. */
export function rowsOf(section: string, samples: Samples, condition: string, against: string): Row[] {
  const shape = { section, condition, threads: 0 } as const
  const row = (figure: string, unit: string, better: 'lower' | 'higher'): Row[] =>
    samples.rows({ ...shape, row: figure, figure, unit, better, against })
  return [
    ...row(CPU, 's', 'lower'),
    ...row('requests/s', '1/s', 'higher'),
    ...['mean', 'sd', 'p50', 'p75', 'p90', 'p99', 'p99.9', 'max'].flatMap((name) => row(name, 'µs', 'lower')),
    ...row('transfer MB/s', 'MB/s', 'higher'),
    ...row('memory', 'MB', 'lower'),
  ]
}

/** Of every table whose sections {@link measureOrSkip} measures. */
export const LOAD_DEFINITIONS = {
  load:
    `${loadName()}; keep-alive connections, one thread on core 1, server alone on core 0, over loopback: ` +
    "Corespun's core sends by reno there, others by the system's congestion control.",
  [CPU]: 'CPU seconds of the server, user and system, over requests, times 100,000.',
}
/** The parameters of those tables. */
export const LOAD_PARAMETERS = {
  rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
  'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
  connections: { value: 100, doc: 'connections of the load' },
  load: { value: 'auto', doc: 'wrk or autocannon; auto: wrk where it is on the PATH' },
}

export default {
  name: 'http',
  title: 'A request over HTTP/1.1',
  definitions: {
    ...LOAD_DEFINITIONS,
    hello: 'GET / returns 13 bytes of text.',
    user: 'GET /user/7 returns JSON made for each request.',
    echo: 'POST of some 1 KiB of JSON: parsed, serialized again, returned.',
    constant: 'GET of a path whose response never changes, where a server has such routes.',
    pipelined: 'hello, 16 requests in one write.',
    work: 'A handler that keeps its thread for 1 ms.',
    'hono hello, hono user, hono echo': 'The same three by one hono app, unchanged, on each server.',
    'express hello, express user, express echo': 'The same three by one express app, on node:http and here.',
    'effect hello, effect user':
      "The same two by one app of Effect, on Effect's own HttpServer and on Corespun.",
    'two cores': 'work, by one worker and by two on one port; the load takes next to nothing.',
    'two cores hello': 'hello, by one worker and by two; the load takes most of a core.',
    seed: "The seed's own command: wrk -t5 -c100 -d10s --latency, five runs of one process, unpinned.",
    'hot run': 'The p99 of each of these five runs; nothing is collected by force between them.',
  },
  parameters: {
    sections: {
      value: [...Object.keys(SECTIONS), 'seed'].join(','),
      quick: 'hello,user',
      doc: 'which, by comma',
    },
    contenders: { value: 'all', quick: `${C_FLOOR},corespun,node:http,bun`, doc: 'which servers, by comma' },
    ...LOAD_PARAMETERS,
    cores: {
      value: 'both',
      quick: 'pinned',
      doc: 'pinned: one core each; both: then every section once more with both on all cores',
    },
  },
  run,
  verdicts,
} satisfies Table
