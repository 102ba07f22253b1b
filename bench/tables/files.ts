/**
 * Table `files`: one function over many small items, by each way to spread them.
 *
 * The items are files to parse, and loops of a known length from 20 µs to 5 ms. Each slice is a process of
 * its own: timed from the opening of its pool to the last value, so starting and warming up count, or, in the
 * rows of whole commands, from the start of the process to its exit.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkAnswer } from '../harness/errors.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { chosenOf, type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'
import { outputOf, outputsOf } from './everyday/command.ts'
import { itemsOfKind } from '../contenders/files/main.ts'
import type { Printed } from '../contenders/files/main.ts'

const HAND = 'chunks by hand'
const CONTENDERS = ['plain loop', 'corespun', HAND, 'piscina', 'tinypool']
const ITEMS = 'items'
const COMMANDS = 'whole commands'
const FOLDER = join(DIST_FOLDER, 'contenders', 'files')
const PROGRAM = join(FOLDER, 'main.js')
const CLI = join(PACKAGE_FOLDER, 'lib', 'cli', 'main.js')
/** Whole commands: a line of JSON for each file of a folder, or for each line of a file in NDJSON. */
const WHOLE: Readonly<Record<string, (module: string, name: string, input: string) => string[]>> = {
  'plain loop': (...words) => [join(FOLDER, 'command.js'), 'plain loop', ...words],
  corespun: (module, name, input) => [
    ...[CLI, 'run', `${module}#${name}`, '--workers', '2'],
    ...(input.endsWith('.ndjson') ? ['--ndjson', input] : [input]),
  ],
  [HAND]: (...words) => [join(FOLDER, 'command.js'), HAND, ...words],
}
/** Items for one of `--items`: those of 5 ms are fewer, or a slice would take a minute. */
const KINDS: Readonly<Record<string, { readonly share: number; readonly of: string }>> = {
  files: { share: 1, of: 'files to parse' },
  '20': { share: 1, of: 'items of 20 µs' },
  '300': { share: 1, of: 'items of 300 µs' },
  '5000': { share: 0.04, of: 'items of 5 ms' },
  mix: { share: 0.08, of: 'items of 20 µs to 5 ms' },
}
const FILE_BYTES = { least: 600, most: 7000 }

async function run(context: Context): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-files-'))
  const counts = context.text('items').split(',').map(Number)
  const rows: Row[] = []
  try {
    for (const count of counts) fill(join(folder, String(count)), count)
    for (const kind of chosenOf(context, 'kinds', Object.keys(KINDS))) {
      for (const count of counts) {
        const files = join(folder, String(count))
        for (const section of chosenOf(context, 'sections', [ITEMS, COMMANDS])) {
          const rowsOf = section === ITEMS ? rowsOfItems : rowsOfCommands
          rows.push(...(await rowsOf(kind, count, files, context)))
        }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return rows
}

async function rowsOfItems(kind: string, items: number, folder: string, context: Context): Promise<Row[]> {
  const { share, of } = KINDS[kind]
  const count = Math.ceil(items * share)
  const samples = new Samples()
  for (let round = 0; round < context.number('rounds'); round += 1) {
    let expected: string | undefined
    // The loop's values are those that the others must have.
    const [first, ...others] = CONTENDERS
    for (const contender of [first, ...shuffled(others, round)]) {
      context.progress(`${count} ${of}, ${contender}: round ${round + 1}`)
      const words = [PROGRAM, contender, kind, String(count), folder]
      const { seconds, cpuUs, digest } = JSON.parse(await outputOf(contender, words)) as Printed
      expected ??= digest
      checkAnswer({ contender, work: of, got: digest, expected })
      samples.add(contender, { seconds, cpuUs })
    }
  }
  return shaped(samples, ITEMS, `${count} ${of}`)
}

async function rowsOfCommands(kind: string, items: number, folder: string, context: Context): Promise<Row[]> {
  const { share, of } = KINDS[kind]
  const count = Math.ceil(items * share)
  const isFiles = kind === 'files'
  const input = isFiles ? folder : `${folder}.${kind}.ndjson`
  if (!isFiles)
    writeFileSync(
      input,
      itemsOfKind(kind, count, folder)
        .map((item) => `${JSON.stringify(item)}\n`)
        .join(''),
    )
  const module = isFiles ? join(DIST_FOLDER, 'contenders', 'everyday', 'parse.js') : join(FOLDER, 'items.js')
  const samples = new Samples()
  let expected: string | undefined
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const [contender, argumentsFor] of shuffled(Object.entries(WHOLE), round)) {
      context.progress(`${count} ${of}, ${contender}, a whole command: round ${round + 1}`)
      const words = argumentsFor(module, isFiles ? 'default' : 'spin', input)
      const startedMs = performance.now()
      const preload = `--import=${pathToFileURL(join(FOLDER, 'usage.js')).href}`
      const { printed, aside } = await outputsOf(contender, [preload, ...words])
      const seconds = (performance.now() - startedMs) / 1000
      const got = createHash('sha256').update(printed).digest('hex')
      expected ??= got
      checkAnswer({ contender, work: of, got, expected })
      samples.add(contender, { seconds, cpuUs: Number(aside) / count })
    }
  }
  return shaped(samples, COMMANDS, `${count} ${of}, by a whole command`)
}

function shaped(samples: Samples, section: string, row: string): Row[] {
  const shape = { condition: 'all cores', threads: 2, unit: 's', better: 'lower' } as const
  return samples.rows({ ...shape, section, row, figure: 'seconds', cpu: 'cpuUs', against: HAND })
}

/** Copies of the small compiled modules of the package. */
function fill(folder: string, count: number): void {
  mkdirSync(folder)
  const dist = join(PACKAGE_FOLDER, 'dist')
  const sources = readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js') && !path.includes('.test.'))
    .filter((path) => {
      const { size } = statSync(join(dist, path))
      return size >= FILE_BYTES.least && size <= FILE_BYTES.most
    })
    .sort()
  for (let at = 0; at < count; at += 1) {
    copyFileSync(join(dist, sources[at % sources.length]), join(folder, `${String(at).padStart(6, '0')}.js`))
  }
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return [...new Set(rows.map(({ row }) => row))].flatMap((row) => {
    const of = (contender: string): Row | undefined => findRow(rows, { row, contender })
    return [
      judgeRatio(
        `${row}: 1.03 × the chunks by hand or less`,
        [of('corespun'), of(HAND)],
        (times) => times <= 1.03,
      ),
      judgeCpu(row, of('corespun'), of(HAND)),
      judgeRatio(
        `${row}: faster than the plain loop`,
        [of('corespun'), of('plain loop')],
        (times) => times < 1,
      ),
    ]
  })
}

/** The CPU of both, medians of all rounds. */
function judgeCpu(row: string, own: Row | undefined, rival: Row | undefined): Verdict {
  const bar = `${row}: 1.03 × the CPU of the chunks by hand or less`
  return judge<[number, number]>(bar, [own?.cpuUs, rival?.cpuUs], (own, rival) => {
    const times = own / rival
    return [`${times.toFixed(2)} ×`, times <= 1.03]
  })
}

export default {
  name: 'files',
  title: 'One function over many small files and items',
  definitions: {
    items:
      'Wall seconds from the opening of the pool to the last value, in a process of its own, and the CPU ' +
      'of the whole process for each item. Files are modules of this package of 0.6 to 7 kB, read and ' +
      'parsed in the worker with acorn. Other items are objects of 64 shapes with a loop of about that ' +
      'time. "corespun" is `zone.map`, over files with a function that imports its module; "chunks by ' +
      'hand" are two workers of node:worker_threads, each with two chunks of 25 items in flight; the pools ' +
      'get an item per task, all at once, and pass 16 ahead to each worker. All values are ' +
      'compared with those of the loop by a digest.',
    [COMMANDS]:
      'Wall seconds of a whole command that prints a line of JSON for each item, in order, from its ' +
      'start to its exit, and the CPU of the whole process for each item. "corespun" is `corespun run`; ' +
      'the chunks by hand are a program of 60 lines, whose workers read and write the JSON. Items that ' +
      'are not files are lines in NDJSON. Outputs are compared byte by byte.',
    ratio: 'To the chunks by hand of the same round; the median of the rounds.',
  },
  parameters: {
    rounds: { value: 7, quick: 2, doc: 'rounds in which every contender has its turn' },
    items: {
      value: '5000,15000',
      quick: '200',
      doc: 'numbers of items, by comma; of 5 ms 4 % of them, of the mix 8 %',
    },
    sections: { value: 'all', doc: 'of items and whole commands, by comma' },
    kinds: { value: 'all', doc: 'of files, 20, 300, 5000 (µs) and mix, by comma' },
  },
  run,
  verdicts,
} satisfies Table
