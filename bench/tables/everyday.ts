/**
 * Table `everyday`: what people come for first, as whole commands: a function over many files, and a call
 * that is ended when its caller aborts it.
 *
 * Each slice is a process of its own, from its start to its exit, so start-up, loading and the printing of
 * results count, as they do for a user.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkAnswer } from '../harness/errors.ts'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { summary } from '../harness/stats.ts'
import { type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { outputOf } from './everyday/command.ts'
import measure from '../contenders/everyday/parse.ts'

const FILES = 'files'
const ABORT = 'an aborted call'
const CONTENDERS = join(DIST_FOLDER, 'contenders', 'everyday')
const CLI = join(PACKAGE_FOLDER, 'lib', 'cli', 'main.js')
const COMMANDS: Readonly<Record<string, (folder: string) => string[]>> = {
  corespun: (folder) => [CLI, 'run', join(CONTENDERS, 'parse.js'), folder],
  piscina: (folder) => [join(CONTENDERS, 'map-piscina.js'), folder],
  'one thread': (folder) => [join(CONTENDERS, 'map-serial.js'), folder],
}

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  for (const count of context.text('files').split(',')) rows.push(...(await files(Number(count), context)))
  return [...rows, ...(await aborted(context))]
}

async function files(count: number, context: Context): Promise<Row[]> {
  const samples = new Samples()
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-files-'))
  try {
    const expected = fill(folder, count)
    for (let round = 0; round < context.number('rounds'); round += 1) {
      for (const [contender, argumentsFor] of shuffled(Object.entries(COMMANDS), round)) {
        context.progress(`${count} ${FILES}, ${contender}: round ${round + 1}`)
        const startedMs = performance.now()
        const got = await outputOf(contender, argumentsFor(folder))
        samples.add(contender, { seconds: (performance.now() - startedMs) / 1000 })
        checkAnswer({ contender, work: FILES, got, expected })
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const shape = { section: FILES, condition: 'all cores', threads: 0, unit: 's', better: 'lower' } as const
  return samples.rows({ ...shape, row: `${count} files`, figure: 'seconds', against: 'one thread' })
}

/** Copies of the compiled modules of the package; returns what every contender must print. */
function fill(folder: string, count: number): string {
  mkdirSync(folder, { recursive: true })
  const dist = join(PACKAGE_FOLDER, 'dist')
  const sources = readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js') && !path.includes('.test.'))
    .sort()
  const lines: string[] = []
  for (let at = 0; at < count; at += 1) {
    const path = join(folder, `${String(at).padStart(6, '0')}.js`)
    copyFileSync(join(dist, sources[at % sources.length]), path)
    lines.push(`${JSON.stringify(measure(path))}\n`)
  }
  return lines.join('')
}

async function aborted(context: Context): Promise<Row[]> {
  const samples = new Samples()
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const contender of shuffled(['corespun', 'piscina'], round)) {
      context.progress(`${ABORT}, ${contender}: round ${round + 1}`)
      const calls = String(context.number('calls'))
      const printed = await outputOf(contender, [join(CONTENDERS, 'abort.js'), contender, calls])
      samples.add(contender, { lost: summary(JSON.parse(printed) as number[]).median })
    }
  }
  const shape = { section: ABORT, condition: 'all cores', threads: 1, unit: 'ms', better: 'lower' } as const
  return samples.rows({ ...shape, row: 'until the next task is done', figure: 'lost', against: 'piscina' })
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const names = [...new Set(rows.map(({ row }) => row))]
  return names.map((row) => {
    const pair = ['corespun', 'piscina'].map((contender) => findRow(rows, { row, contender }))
    return judgeRatio(`${row}: no slower than piscina`, pair, (times) => times <= 1)
  })
}

export default {
  name: 'everyday',
  title: 'A function over many files; a call that is really ended',
  definitions: {
    [FILES]:
      'Wall seconds of a whole command that parses the files with acorn and prints a line of JSON for ' +
      'each, in order: `corespun run` with a plain function, a program with piscina that submits all and ' +
      'passes 16 ahead to each worker, and a loop. The files are copies of the modules of this ' +
      'package; outputs are compared byte by byte.',
    [ABORT]:
      'A pool of one worker, busy in an endless loop whose caller aborts it: milliseconds until the next ' +
      'task of the pool has its result. Corespun with `graceMs: 0`, as piscina has no grace.',
    ratio: 'Of the same round; the median of the rounds.',
  },
  parameters: {
    rounds: { value: 9, quick: 2, doc: 'rounds in which every contender has its turn' },
    files: { value: '3000,12000', quick: '300', doc: 'numbers of files, of 1 to 30 KB, by comma' },
    calls: { value: 11, quick: 3, doc: 'aborted calls of one process; its figure is their median' },
  },
  run,
  verdicts,
} satisfies Table
