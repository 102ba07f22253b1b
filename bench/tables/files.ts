/**
 * Table `files`: one function over many small items, by each way to spread them.
 *
 * The items are files to parse, and loops of a known length from 20 µs to 5 ms. Each slice is a process of
 * its own, timed from the opening of its pool to the last value, so starting and warming up count.
 */
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAnswer } from '../harness/errors.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { chosenOf, type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { outputOf } from './everyday/command.ts'
import type { Printed } from '../contenders/files/main.ts'

const HAND = 'chunks by hand'
const CONTENDERS = ['plain loop', 'corespun', HAND, 'piscina', 'tinypool']
const PROGRAM = join(DIST_FOLDER, 'contenders', 'files', 'main.js')
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
    fill(folder, Math.max(...counts))
    for (const kind of chosenOf(context, 'kinds', Object.keys(KINDS)))
      for (const count of counts) rows.push(...(await rowsOf(kind, count, folder, context)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return rows
}

async function rowsOf(kind: string, items: number, folder: string, context: Context): Promise<Row[]> {
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
  const shape = { section: 'items', condition: 'all cores', threads: 2, unit: 's', better: 'lower' } as const
  return samples.rows({
    ...shape,
    row: `${count} ${of}`,
    figure: 'seconds',
    cpu: 'cpuUs',
    against: HAND,
  })
}

/** Copies of the small compiled modules of the package. */
function fill(folder: string, count: number): void {
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
      judgeRatio(
        `${row}: faster than the plain loop`,
        [of('corespun'), of('plain loop')],
        (times) => times < 1,
      ),
    ]
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
      'get an item per task, all at once. All values are compared with those of the loop by a digest.',
    ratio: 'To the chunks by hand of the same round; the median of the rounds.',
  },
  parameters: {
    rounds: { value: 7, quick: 2, doc: 'rounds in which every contender has its turn' },
    items: {
      value: '5000,15000',
      quick: '200',
      doc: 'numbers of items, by comma; of 5 ms 4 % of them, of the mix 8 %',
    },
    kinds: { value: 'all', doc: 'of files, 20, 300, 5000 (µs) and mix, by comma' },
  },
  run,
  verdicts,
} satisfies Table
