/**
 * Table `start`: what a program pays before its first result, in time and in memory.
 *
 * Each figure is that of a fresh process. The package is loaded as its users load it: through its doors, from
 * the bundle.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAnswer } from '../harness/errors.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, type Judged } from '../harness/verdicts.ts'
import { outputOf } from './everyday/command.ts'
import { firstResponse } from './everyday/server.ts'

const IMPORT = 'import'
const FIRST = 'first result'
const COMMAND = 'command'
const SERVER = 'server'
const MEMORY = 'memory'
const CONTENDERS = join(DIST_FOLDER, 'contenders', 'start')
const CLI = join(PACKAGE_FOLDER, 'lib', 'cli', 'main.js')

/** What is imported, and an export that is a function or an object then. */
const PACKAGES: Readonly<Record<string, readonly [name: string, kind: string]>> = {
  nothing: ['default', 'undefined'],
  'corespun/zone': ['zone', 'object'],
  corespun: ['zone', 'object'],
  'corespun/fiber': ['fork', 'function'],
  'corespun/http': ['serve', 'function'],
  piscina: ['Piscina', 'function'],
  tinypool: ['default', 'function'],
  workerpool: ['pool', 'function'],
  hono: ['Hono', 'function'],
  fastify: ['fastify', 'function'],
  effect: ['Effect', 'object'],
}
const POOLS = ['corespun/zone', 'corespun', 'piscina', 'tinypool', 'workerpool', 'raw Worker']
const WORKERS = 2
/** Memory per worker is the growth between these two. */
const WORKERS_FEW = 1
const WORKERS_MANY = 4
const TINY_FILES = 5

async function run(context: Context): Promise<Row[]> {
  return [
    ...(await imports(context)),
    ...(await firstResults(context)),
    ...(await commands(context)),
    ...(await servers(context)),
    ...(await memory(context)),
  ]
}

/** One fresh process of each in every round; `measure` returns the figures of one. */
async function inRounds(
  context: Context,
  what: string,
  contenders: readonly string[],
  measure: (contender: string) => Promise<Readonly<Record<string, number>>>,
): Promise<Samples> {
  const samples = new Samples()
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const contender of shuffled(contenders, round)) {
      context.progress(`${what}, ${contender}: round ${round + 1}`)
      samples.add(contender, await measure(contender))
    }
  }
  return samples
}

async function imports(context: Context): Promise<Row[]> {
  const samples = await inRounds(context, IMPORT, Object.keys(PACKAGES), async (contender) => {
    const [name, expected] = PACKAGES[contender]
    const startedMs = performance.now()
    const printed = await outputOf(contender, [join(CONTENDERS, 'import.js'), contender, name])
    const wallMs = performance.now() - startedMs
    const { answer, cpuMs, rssMb } = JSON.parse(printed) as Record<string, number>
    checkAnswer({ contender, work: IMPORT, got: answer, expected })
    return { wallMs, cpuMs, rssMb }
  })
  return [
    ...samples.rows({ ...MS, section: IMPORT, row: 'whole process', figure: 'wallMs', against: 'piscina' }),
    ...samples.rows({ ...MS, section: IMPORT, row: 'CPU', figure: 'cpuMs', against: 'piscina' }),
    ...samples.rows({ ...MB, section: MEMORY, row: 'after import', figure: 'rssMb', against: 'piscina' }),
  ]
}

async function firstResults(context: Context): Promise<Row[]> {
  const samples = await inRounds(context, FIRST, POOLS, (contender) => started(contender, WORKERS))
  const shape = { ...MS, section: FIRST, threads: WORKERS, against: 'piscina' }
  return [
    ...samples.rows({ ...shape, row: 'process start to first result', figure: 'firstMs' }),
    ...samples.rows({ ...shape, row: 'CPU', figure: 'cpuMs' }),
  ]
}

async function memory(context: Context): Promise<Row[]> {
  const samples = await inRounds(context, MEMORY, POOLS, async (contender) => {
    const few = await started(contender, WORKERS_FEW)
    const many = await started(contender, WORKERS_MANY)
    return { perWorker: (many.rssMb - few.rssMb) / (WORKERS_MANY - WORKERS_FEW), many: many.rssMb }
  })
  const shape = { ...MB, section: MEMORY, threads: WORKERS_MANY, against: 'raw Worker' }
  return [
    ...samples.rows({ ...shape, row: 'each worker', figure: 'perWorker' }),
    ...samples.rows({ ...shape, row: `a pool of ${WORKERS_MANY}`, figure: 'many' }),
  ]
}

/** Start a pool in a process of its own and run tasks. */
async function started(
  contender: string,
  workers: number,
): Promise<{ firstMs: number; cpuMs: number; rssMb: number }> {
  const printed = await outputOf(contender, [join(CONTENDERS, 'pool.js'), contender, String(workers)])
  const { answer, firstMs, cpuMs, rssMb } = JSON.parse(printed) as Record<string, number>
  checkAnswer({ contender, work: FIRST, got: answer, expected: 42 })
  return { firstMs, cpuMs, rssMb }
}

async function commands(context: Context): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-start-'))
  const paths = Array.from({ length: TINY_FILES }, (_, at) => join(folder, `${at}.txt`))
  paths.forEach((path, at) => writeFileSync(path, 'x'.repeat(at)))
  const expected = paths.map((_, at) => `${at}\n`).join('')
  const script = join(CONTENDERS, 'script.js')
  const words: Readonly<Record<string, readonly string[]>> = {
    corespun: [CLI, 'run', join(CONTENDERS, 'size.js'), ...paths],
    piscina: [script, 'piscina', folder],
    'one thread': [script, 'one thread', folder],
  }
  try {
    const samples = await inRounds(context, COMMAND, Object.keys(words), async (contender) => {
      const startedMs = performance.now()
      const got = await outputOf(contender, words[contender])
      const wallMs = performance.now() - startedMs
      checkAnswer({ contender, work: COMMAND, got, expected })
      return { wallMs }
    })
    const row = `${TINY_FILES} tiny files`
    return samples.rows({ ...MS, section: COMMAND, row, figure: 'wallMs', against: 'piscina' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function servers(context: Context): Promise<Row[]> {
  const script = join(CONTENDERS, 'server.js')
  const app = join(CONTENDERS, 'app.js')
  const words: Readonly<Record<string, readonly string[]>> = {
    'corespun/http': [script, 'corespun/http'],
    'corespun serve': [CLI, 'serve', app, '--port', '0', '--workers', String(WORKERS)],
    'node:http': [script, 'node:http'],
    fastify: [script, 'fastify'],
  }
  const samples = await inRounds(context, SERVER, Object.keys(words), async (contender) => {
    const { response, firstMs } = await firstResponse(contender, words[contender])
    checkAnswer({ contender, work: SERVER, got: response.endsWith('hello'), expected: true })
    return { firstMs }
  })
  const row = 'process start to first response'
  return samples.rows({ ...MS, section: SERVER, row, figure: 'firstMs', against: 'node:http' })
}

const MS = { condition: 'all cores', threads: 0, unit: 'ms', better: 'lower' } as const
const MB = { condition: 'all cores', threads: 0, unit: 'MB', better: 'lower' } as const

/** The demands, in the units of their rows. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  const atMost = (bar: string, most: number, traits: Partial<Row>): Verdict =>
    judge<[Row]>(
      `${bar} ≤ ${most} ${traits.unit ?? ''}`,
      [findRow(rows, traits)],
      ({ median, unit }): Judged => [`${median.toFixed(1)} ${unit}`, median <= most],
    )
  const imported = { section: IMPORT, row: 'whole process', unit: 'ms' }
  const first = { section: FIRST, row: 'process start to first result', unit: 'ms' }
  return [
    atMost('import of the zone door', 45, { ...imported, contender: 'corespun/zone' }),
    atMost('import of the root', 60, { ...imported, contender: 'corespun' }),
    atMost('first result of a zone of two', 110, { ...first, contender: 'corespun/zone' }),
    atMost('run on five tiny files', 110, { section: COMMAND, contender: 'corespun', unit: 'ms' }),
    atMost('first response of a server', 150, { section: SERVER, contender: 'corespun/http', unit: 'ms' }),
    atMost('first response of `corespun serve`', 150, {
      section: SERVER,
      contender: 'corespun serve',
      unit: 'ms',
    }),
    atMost('memory after the import of the root', 56, {
      section: MEMORY,
      row: 'after import',
      contender: 'corespun',
      unit: 'MB',
    }),
    atMost('memory of each worker', 12.5, {
      section: MEMORY,
      row: 'each worker',
      contender: 'corespun/zone',
      unit: 'MB',
    }),
  ]
}

export default {
  name: 'start',
  title: 'Start-up: import, first result, memory',
  definitions: {
    [IMPORT]:
      'A fresh process that imports one package and ends: its wall time as its parent sees it, and its ' +
      'CPU time when the import is done. `nothing` imports nothing.',
    [FIRST]:
      `A fresh process that imports a pool, starts it with ${WORKERS} workers and awaits one task, which ` +
      'doubles a number by a function of a module: milliseconds from the start of the process until the ' +
      'result, and the CPU of all threads until then. All threads of each pool start at once.',
    [COMMAND]:
      `Wall milliseconds of a command that prints the length of ${TINY_FILES} files of 0 to 4 bytes: ` +
      '`corespun run` with a plain function, from its second start on, as it keeps compiled modules ' +
      "(Node's compile cache); and a program with piscina; `one thread` is a loop.",
    [SERVER]:
      'Milliseconds from the start of a process that serves one route until the first response is with its ' +
      `client: a program with one server, and \`corespun serve\` with ${WORKERS} workers.`,
    [MEMORY]:
      'Resident memory of a fresh process after its import; and of one with a pool when all workers have ' +
      `run tasks: of ${WORKERS_MANY} workers, and the growth of each from ${WORKERS_FEW} to ${WORKERS_MANY}.`,
    ratio: 'Of the same round; the median of the rounds.',
  },
  parameters: {
    rounds: { value: 15, quick: 2, doc: 'rounds in which every contender has its turn' },
  },
  run,
  verdicts,
} satisfies Table
