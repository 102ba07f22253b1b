/**
 * Table `gc`: what collecting garbage costs Corespun's server, by Node and by collector.
 *
 * The seed compares collectors of the JVM by the latencies of its server. Node has one collector with
 * settings: its default, a smaller and a larger young generation (`--max-semi-space-size`), and no threads
 * beside the main one.
 */
import { existsSync } from 'node:fs'
import type { Collected } from '../contenders/http/collected.ts'
import { ASKED } from '../contenders/http/responses.ts'
import { Child } from '../harness/child.ts'
import { checkAnswer } from '../harness/errors.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import type { Context, Row, Table } from '../harness/table.ts'
import { chooseLoad, load, loadName } from './http/load.ts'

const PORT = 39_100
const SECTIONS = ['hello', 'user', 'generator'] as const
const COLLECTORS: Readonly<Record<string, readonly string[]>> = {
  default: [],
  'semi-space 2 MB': ['--max-semi-space-size=2'],
  'semi-space 64 MB': ['--max-semi-space-size=64'],
  'single-threaded': ['--single-threaded-gc'],
}

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  const rows: Row[] = []
  for (const section of SECTIONS) {
    for (const [collector, flags] of Object.entries(COLLECTORS)) {
      const samples = new Samples()
      for (let round = 0; round < context.number('rounds'); round += 1) {
        for (const [name, node] of nodes(context)) {
          context.progress(`${section}, ${collector}, ${name}: round ${round + 1}`)
          samples.add(name, await slice(section, [node, ...flags], context))
        }
      }
      rows.push(...rowsOf(section, collector, samples))
    }
  }
  return rows
}

/** Node by name; those that are not here are left out, by name. */
function nodes(context: Context): [string, string][] {
  const chosen = context.text('nodes').split(',')
  return chosen.flatMap((major): [string, string][] => {
    const candidates = [
      process.versions.node.startsWith(`${major}.`) ? process.execPath : undefined,
      process.env[`CORESPUN_BENCH_NODE_${major}`],
      `${PACKAGE_FOLDER}/.set-up/nodes/node_modules/node-${major}/bin/node`,
    ]
    const found = candidates.find((path) => path !== undefined && existsSync(path))
    if (found !== undefined) return [[`Node ${major}`, found]]
    context.skip(
      `Node ${major}`,
      'not here: `npm test` installs it, CORESPUN_BENCH_NODE_* names another path',
    )
    return []
  })
}

/** One process, warmed, then counted. */
async function slice(
  section: (typeof SECTIONS)[number],
  [node, ...flags]: readonly [string, ...string[]],
  context: Context,
): Promise<Record<string, number>> {
  const program = `${DIST_FOLDER}/contenders/http/collected.js`
  const child = await Child.start('corespun', ['taskset', '-c', '0', node, ...flags, program, String(PORT)])
  try {
    const { path, expected } = ASKED[section]
    const got = await (await fetch(`http://127.0.0.1:${PORT}${path}`)).text()
    checkAnswer({ contender: node, work: section, got, expected })
    const connections = context.number('connections')
    const plan = { threads: 1, connections, seconds: 1, prefix: ['taskset', '-c', '1'] }
    await load(section, PORT, plan)
    await child.order('start')
    const { requests, us } = await load(section, PORT, { ...plan, seconds: context.number('slice-s') })
    const { bytes, collections, pauseUs, longestUs, rssMb } = await child.order<Collected>('stop')
    const per = 100_000 / requests
    return {
      'bytes per request': bytes / requests,
      'collections per 100,000': collections * per,
      'pauses per 100,000': (pauseUs / 1000) * per,
      'longest pause': longestUs / 1000,
      memory: rssMb,
      p99: us.p99,
      'p99.9': us['p99.9'],
    }
  } finally {
    await child.end()
  }
}

function rowsOf(section: string, collector: string, samples: Samples): Row[] {
  const condition = `${collector}, server on core 0, load on core 1`
  const row = (figure: string, unit: string): Row[] =>
    samples.rows({ section, condition, threads: 0, row: figure, figure, unit, better: 'lower' })
  return [
    ...row('bytes per request', 'B'),
    ...row('collections per 100,000', ''),
    ...row('pauses per 100,000', 'ms'),
    ...row('longest pause', 'ms'),
    ...row('memory', 'MB'),
    ...row('p99', 'µs'),
    ...row('p99.9', 'µs'),
  ]
}

export default {
  name: 'gc',
  title: 'What collecting garbage costs a server',
  definitions: {
    load: `${loadName()}; keep-alive connections, one thread on core 1, server alone on core 0.`,
    'hello, user, generator':
      'As in tables http and streams, by the native core; a round is a process of its own, warmed for 1 s.',
    'bytes per request': "Bytes of JavaScript's heap that one request allocates.",
    memory: 'Resident memory at the end of the slice.',
    'pauses per 100,000': 'Time of the main thread in collections, over 100,000 requests.',
    p99: 'Of the latencies that the load saw.',
  },
  parameters: {
    nodes: { value: '20,24,26', quick: '24', doc: 'major versions of Node, by comma' },
    rounds: { value: 5, quick: 1, doc: 'processes of each kind' },
    'slice-s': { value: 5, quick: 1, doc: 'seconds of one slice' },
    connections: { value: 100, doc: 'connections of the load' },
    load: { value: 'auto', doc: 'wrk or autocannon; auto: wrk where it is on the PATH' },
  },
  run,
} satisfies Table
