/**
 * Every `@example` of a doc comment in src is a program that runs.
 *
 * Each is a fenced `ts` block. Together they are compiled by the strict settings of the checkout against the
 * built declarations, so that they use only what is public; each then runs alone, exits with 0 and writes
 * nothing to standard error.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { describe, test } from 'node:test'
import { filesBelow, inRoot, ROOT } from '../../scripts/set-up/index.mjs'
import { examplesIn } from './blocks.mjs'
import { compilePrograms, programFolder, runProgram } from './programs.mjs'

const isSource = (path) => path.endsWith('.ts') && !path.includes('.test.')
const paths = filesBelow(inRoot('src'), isSource)
const examples = paths.flatMap((path) => examplesIn(path.slice(ROOT.length), readFileSync(path, 'utf8')))
const folder = programFolder('examples-')

test('an example is what its fence contains, without the stars of the comment', () => {
  const comment = (...lines) => ['/**', ...lines.map((line) => ` * ${line}`.trimEnd()), ' */'].join('\n')
  const fence = ['```ts', "import a from 'a'", '', '  a()', '```']
  const [only] = examplesIn('src/a.ts', comment('Does it.', '@example', ...fence, '@throws'))
  assert.deepEqual(only, { name: 'src-a-ts-3', text: "import a from 'a'\n\n  a()\n" })
  assert.equal(examplesIn('src/a.ts', comment('@example Twice', ...fence, '@example', ...fence)).length, 2)
  assert.deepEqual(examplesIn('src/a.ts', comment(...fence)), [])
  for (const broken of [
    ['@example', 'a()'],
    ['@example', '```ts', 'a()'],
    ['@example', '```', 'a()', '```'],
  ])
    assert.throws(() => examplesIn('src/a.ts', comment(...broken)), /src\/a\.ts:2: @example without/)
})

test('the examples have right types', () => {
  assert.equal(examples.length === 0 ? '' : compilePrograms(folder, examples), '')
})

describe('examples', { concurrency: availableParallelism() }, () => {
  for (const { name } of examples) test(`${name} runs`, () => runProgram(folder, name))
})
