/**
 * Every code block of the documentation is run.
 *
 * `ts` blocks are compiled together by the strict settings of the checkout and run one by one as programs
 * that import `corespun`; a `text output` block right behind one is exactly what it prints. `sh` blocks are
 * run too; a line that serves until it gets an answer and then a signal. Lines that install are not run, and
 * of npm scripts it is only looked up that there are such: what they do has tests of its own. A block in
 * another language is prose. The programs of the pages for a new project are compiled here and run, with
 * their commands, by door.test.mjs. The programs of the pages about heavy libraries need these: test/heavy.
 */
import assert from 'node:assert/strict'
import { readFileSync, symlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesBelow, inRoot, ROOT } from '../../scripts/set-up/index.mjs'
import { blocksIn, isOfDoor, shellKind } from './blocks.mjs'
import { isPage } from '../heavy/project.mjs'
import { compilePrograms, hasSqlite, programFolder, runProgram, SQLITE_NODE } from './programs.mjs'
import { Shell } from './shell.mjs'

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'docs']

const folder = programFolder('blocks-')

const paths = DOCUMENTS.flatMap((name) =>
  filesBelow(inRoot(name), (path) => path.endsWith('.md') && !isPage(path)),
)
const blocks = paths.flatMap((path) => blocksIn(path.slice(ROOT.length), readFileSync(path, 'utf8')))
const programs = blocks.filter(({ language }) => language === 'ts')
const commands = blocks.filter(({ language }) => language === 'sh')
const shell = new Shell(ROOT)

/** Where commands write files: beside what they read. */
function fileShell() {
  const beside = programFolder('files-')
  for (const name of ['docs', 'examples']) symlinkSync(inRoot(name), join(beside, name), 'junction')
  return new Shell(beside, SQLITE_NODE)
}

test('there are programs and commands to run', () => {
  assert.ok(programs.length >= 2, `${programs.length} programs`)
  assert.ok(commands.length >= 2, `${commands.length} commands`)
})

test('the programs of the documentation have right types', () => {
  assert.equal(compilePrograms(folder, programs), '')
})

test('the programs of the documentation have no `await using`, which Node 20 cannot parse', () => {
  const newer = programs.filter(({ text }) => /^\s*(await )?using /m.test(text)).map(({ name }) => name)
  assert.deepEqual(newer, [])
})

describe('programs', { concurrency: availableParallelism() }, () => {
  for (const { name, output } of programs.filter((block) => !isOfDoor(block.name))) {
    test(`${name} runs`, async () => {
      const stdout = await runProgram(folder, name)
      if (output !== undefined && stdout !== undefined) assert.equal(stdout, output)
    })
  }
})

for (const { name, text, output } of commands) {
  const hasFile = hasSqlite(text)
  const isHere = !isOfDoor(name) && !(hasFile && SQLITE_NODE === undefined)
  test(`${name} works as typed`, async () => {
    let printed = ''
    const own = hasFile && isHere ? fileShell() : shell
    const scripts = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).scripts
    for (const line of text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))) {
      const { kind, word } = shellKind(line)
      if (kind === 'script') assert.ok(word in scripts, `${line}: package.json has no script ${word}`)
      if (kind === 'run' && isHere) printed += own.typed(line)
      if (kind === 'serve' && isHere) await own.served(line)
      assert.notEqual(kind, 'unknown', `${line}: is this run, an npm script, or an install?`)
    }
    if (output !== undefined && isHere) assert.equal(printed, output)
  })
}
