/**
 * Table `heavy`: what a heavy library does to a light route of the same server: called in the handler of
 * node:http, in a zone of threads, and in a zone of processes.
 *
 * The calls are those of the pages docs/guide/heavy-*.md, installed as the tests install them.
 */
import { rmSync } from 'node:fs'
import { PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import { chosenOf, type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { MODES, startHeavy, type Heavy } from './heavy/process.ts'
import { ask, builtClient } from './service/client.ts'

const LIBRARIES = [
  'sharp',
  'onnxruntime-node',
  'node:sqlite',
  'better-sqlite3',
  'gpt-tokenizer',
  'react-dom',
  'pdfkit',
] as const
const [INLINE, , PROCESS] = MODES
const HELLO = { route: 'hello', connections: 10, perSecond: 500 } as const
const HEAVY = { route: 'heavy', connections: 4, perSecond: 0 } as const
/** The heavy load begins this long before the light route is measured, and ends after it. */
const LEAD_S = 0.5

async function run(context: Context): Promise<Row[]> {
  const client = builtClient(context.skip)
  if (client === undefined) return []
  const path: string = `${PACKAGE_FOLDER}/test/heavy/project.mjs`
  const { project } = (await import(path)) as { project(): Promise<string> }
  const folder = await project()
  const rows: Row[] = []
  try {
    for (const library of chosenOf(context, 'libraries', LIBRARIES))
      rows.push(...(await measureLibrary(library, folder, client, context)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return rows
}

async function measureLibrary(
  library: string,
  folder: string,
  client: string,
  context: Context,
): Promise<Row[]> {
  const servers = new Map<string, Heavy>()
  try {
    for (const mode of MODES) {
      const server = await startHeavy(folder, library, mode)
      if (server === undefined) context.skip(`${library}, ${mode}`, 'the server did not start on this Node')
      else servers.set(mode, server)
    }
    return await measure(library, servers, client, context)
  } finally {
    for (const server of servers.values()) await server.end()
  }
}

async function measure(
  library: string,
  servers: ReadonlyMap<string, Heavy>,
  client: string,
  context: Context,
): Promise<Row[]> {
  const [quiet, samples] = [new Samples(), new Samples()]
  const seconds = context.number('slice-s')
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const [mode, { port, expected }] of servers) {
      context.progress(`${library}, ${mode}: round ${round + 1}`)
      quiet.add(mode, (await ask(client, { ...HELLO, port, seconds })).us)
      const heavy = ask(client, { ...HEAVY, port, seconds: seconds + 2 * LEAD_S, expected })
      await new Promise((resolve) => setTimeout(resolve, LEAD_S * 1000))
      const { us } = await ask(client, { ...HELLO, port, seconds })
      const beside = await heavy
      samples.add(mode, { ...us, 'heavy/s': beside.answers / beside.seconds })
    }
  }
  const shape = { section: library, condition: 'all on all cores', threads: 2, unit: 'µs' } as const
  const figures = ['p50', 'p99', 'max'].map((figure) => ({ figure, row: figure }))
  return [
    ...quiet.rows({ ...shape, row: 'p99, quiet', figure: 'p99', better: 'lower' }),
    ...figures.flatMap((one) => samples.rows({ ...shape, ...one, better: 'lower', against: INLINE })),
    ...samples.rows({ ...shape, row: 'heavy/s', figure: 'heavy/s', unit: '1/s', better: 'higher' }),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const sections = new Set(rows.map(({ section }) => section))
  return [...sections].map((section) => {
    const of = (contender: string): number | undefined =>
      findRow(rows, { section, row: 'p99', contender })?.median
    const bar = `${section}: p99 beside a zone of processes at most that beside work in the handler`
    return judge<[number, number]>(bar, [of(INLINE), of(PROCESS)], (inline, process) => [
      `${process.toFixed(0)} and ${inline.toFixed(0)} µs`,
      process <= inline,
    ])
  })
}

export default {
  name: 'heavy',
  title: 'A light route beside a heavy library',
  definitions: {
    'in node:http': 'node:http in one thread; the handler calls the library.',
    'in a zone of threads': "Corespun's server in one thread, and a zone of two workers, nice 3.",
    'in a zone of processes': "The same with isolation: 'process'.",
    'a section':
      'A library: four connections that ask for a call of tens of ms again and again; all checked.',
    'p50, p99, max': 'Of the light route, 500 requests a second on ten connections; counted from when due.',
    'p99, quiet': 'The same while nothing else is asked for, just before, on the same server.',
    ratio: 'Against the handler of node:http in the same round; the median of the rounds.',
  },
  parameters: {
    libraries: { value: 'all', doc: 'which, by comma' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all three take their turn' },
    'slice-s': { value: 1.8, quick: 1.3, doc: 'seconds of one slice; its first 0.3 are not counted' },
  },
  run,
  verdicts,
} satisfies Table
