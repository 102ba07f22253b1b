/**
 * The words of `corespun run` against what they should become; each wrong word is named in its error.
 * A flag that is added without a line in one of the two tables is a flag nobody has tried.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { HELP, readArguments, type RunOptions, splitTarget } from './arguments.ts'

/** Has no file of any of these names. */
const folder = '/nowhere'

const defaults: RunOptions = {
  module: 'm.ts',
  exportName: 'default',
  exportNamed: false,
  inputs: ['-'],
  ignored: [],
  items: 'lines',
  workers: availableParallelism(),
  concurrency: 1,
  timeoutMs: 0,
  skipCount: 0,
  journal: undefined,
  journalHash: false,
  failed: false,
  lineCharsMax: 16_777_216,
  ordered: true,
  numbered: false,
  failFast: false,
  stacks: false,
  progress: true,
  observe: true,
}

const flipped = { ordered: false, numbered: true }

const accepted: readonly (readonly [words: string, differs: Partial<RunOptions>])[] = [
  ['m.ts', {}],
  ['m.ts -', {}],
  ['m.ts#score -', { exportName: 'score', exportNamed: true }],
  ['m.ts#a.b -', { exportName: 'a.b', exportNamed: true }],
  ['a#b/m.ts#score -', { module: 'a#b/m.ts', exportName: 'score', exportNamed: true }],
  ['#internal -', { module: '#internal' }],
  ['m.ts a.js b.js', { inputs: ['a.js', 'b.js'], items: 'paths' }],
  ['m.ts --lines a.txt', { inputs: ['a.txt'] }],
  ['m.ts --ndjson a.txt', { inputs: ['a.txt'], items: 'ndjson' }],
  ['--ndjson m.ts', { items: 'ndjson' }],
  ['m.ts --lines a.txt - b.txt', { inputs: ['a.txt', '-', 'b.txt'] }],
  ['m.ts -- --odd-name', { inputs: ['--odd-name'], items: 'paths' }],
  ['m.ts src --ignore a --ignore=b', { inputs: ['src'], items: 'paths', ignored: ['a', 'b'] }],
  ['m.ts --workers 3 --concurrency 20', { workers: 3, concurrency: 20 }],
  ['m.ts -w 3 -c 20 -t 5 -u -n', { workers: 3, concurrency: 20, timeoutMs: 5, ...flipped }],
  ['m.ts --timeout 250', { timeoutMs: 250 }],
  ['m.ts --timeout=250ms', { timeoutMs: 250 }],
  ['m.ts --timeout 1.5s', { timeoutMs: 1500 }],
  ['m.ts --timeout 2m', { timeoutMs: 120_000 }],
  ['m.ts --timeout 1h', { timeoutMs: 3_600_000 }],
  ['m.ts --line-max 10', { lineCharsMax: 10 }],
  ['m.ts --skip 276', { skipCount: 276 }],
  ['m.ts --journal work.db --journal-hash', { journal: 'work.db', journalHash: true }],
  ['m.ts --journal sqlite:work.db --failed', { journal: 'work.db', failed: true }],
  ['m.ts --fail-fast --stacks --no-progress', { failFast: true, stacks: true, progress: false }],
]
for (const [words, differs] of accepted) {
  test(`accepted: ${words}`, () => {
    assert.deepEqual(
      readArguments(words.split(' '), () => false, folder),
      { ...defaults, ...differs },
    )
  })
}

const refused: readonly (readonly [words: string, named: RegExp])[] = [
  ['', /name the module/],
  ['m.ts# -', /export's name is missing .* m\.ts#/],
  ['m.ts --unknown', /--unknown/],
  ['m.ts --workers', /--workers/],
  ['m.ts --workers 0', /--workers takes .* not "0"/],
  ['m.ts --workers 2.5', /--workers takes .* not "2\.5"/],
  ['m.ts --workers many', /--workers takes .* not "many"/],
  ['m.ts --workers 1025', /from 1 to 1024/],
  ['m.ts --concurrency 0', /--concurrency takes .* not "0"/],
  ['m.ts --timeout soon', /--timeout takes .* not "soon"/],
  ['m.ts --timeout 0', /--timeout takes .* not "0"/],
  ['m.ts --timeout 300h', /--timeout takes .* not "300h"/],
  ['m.ts --skip -1', /--skip/],
  ['m.ts --skip some', /--skip takes .* not "some"/],
  ['m.ts --journal=', /--journal needs a value/],
  ['m.ts --journal-hash', /--journal-hash needs --journal/],
  ['m.ts --failed', /--failed needs --journal/],
  ['m.ts --journal work.db --skip 3', /--journal and --skip exclude each other/],
  ['m.ts --line-max 0', /--line-max takes .* not "0"/],
  ['m.ts --lines --ndjson', /exclude each other/],
  ['m.ts - -', /only once/],
  ['m.ts a.txt -', /--lines or --ndjson/],
]
for (const [words, named] of refused) {
  test(`refused: ${words === '' ? '(nothing)' : words}`, () => {
    const all = words === '' ? [] : words.split(' ')
    assert.throws(() => readArguments(all, () => false, folder), {
      name: 'CliError',
      code: 'CLI_USAGE',
      message: named,
    })
  })
}

test('without inputs a pipe is read, and a terminal is an error', () => {
  assert.throws(() => readArguments(['m.ts'], () => true, folder), {
    code: 'CLI_USAGE',
    message: /or - to read/,
  })
  assert.deepEqual((readArguments(['m.ts'], () => false, folder) as RunOptions).inputs, ['-'])
})

test('help is help in any position', () => {
  const positions = [['--help'], ['-h'], ['m.ts', 'a', '--help']]
  for (const words of positions)
    assert.equal(
      readArguments(words, () => true, folder),
      HELP,
    )
})

test('what leaves is frozen', () => {
  const options = readArguments(['m.ts', 'a'], () => false, folder) as RunOptions
  assert(Object.isFrozen(options) && Object.isFrozen(options.inputs) && Object.isFrozen(options.ignored))
})

test('a # in the path of a file divides nothing, one behind it does', () => {
  const here = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
  try {
    mkdirSync(join(here, 'c#'))
    writeFileSync(join(here, 'c#', 'score.ts'), '')
    const whole = { module: 'c#/score.ts', exportName: undefined }
    assert.deepEqual(splitTarget('c#/score.ts', here), whole)
    const path = join(here, 'c#', 'score.ts')
    assert.deepEqual(splitTarget(path, '/nowhere'), { module: path, exportName: undefined })
    assert.deepEqual(splitTarget('c#/score.ts#score', here), { ...whole, exportName: 'score' })
  } finally {
    rmSync(here, { recursive: true })
  }
})
