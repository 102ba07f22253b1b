/**
 * The pages about heavy libraries: their programs have right types and print what the pages show, and each
 * library behaves in zones of threads and of processes as the table of docs/guide/heavy.md states.
 *
 * Programs are files of a project and run as typed; where Node does not strip types, `node` loads
 * `corespun/typescript`, as the page asks its readers to. Where a Node lacks a library, that is the reason of
 * the skipped test.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { inRoot, tsc } from '../../scripts/set-up/index.mjs'
import { skipOf } from '../../dist/base/part.test.support.js'
import { nameOf, shellKind } from '../docs/blocks.mjs'
import { blocks, project } from './project.mjs'

const PROGRAM_MS_MAX = 120_000
const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)
const TYPES = process.features.typescript ? [] : ['--import', 'corespun/typescript']
/** Libraries that this Node lacks, and why; all of them are there on the newest. */
const LACKS = {
  ...((MAJOR < 22 || (MAJOR === 22 && MINOR < 13)) && { 'node:sqlite': 'node:sqlite needs Node 22.13' }),
  ...(MAJOR < 22 && {
    'better-sqlite3': "better-sqlite3 13 needs Node 22, and npm's package of 12 has no add-on",
  }),
}

const WORKS = { values: 1, cancelled: 'TASK_TIMEOUT', died: 1 }
/** The process aborts when a thread ends that computes in the add-on, unless it is between two steps. */
const ABORTS = [{ signal: 'SIGABRT' }, WORKS]
const TRIED = {
  sharp: [WORKS, WORKS],
  'onnxruntime-node': [ABORTS, WORKS],
  'node:sqlite': [WORKS, WORKS],
  'better-sqlite3': [WORKS, WORKS],
  'gpt-tokenizer': [WORKS, WORKS],
  'react-dom': [WORKS, WORKS],
  pdfkit: [WORKS, WORKS],
}

let rows = 0
/** Why a program is skipped, by the libraries that it uses. What Nodes may lack is a part of the newest. */
function whyNot(used) {
  const mayLack = used.some((name) => name === 'node:sqlite' || name === 'better-sqlite3')
  return used.map((name) => LACKS[name]).find(Boolean) ?? skipOf(mayLack ? 1 : rows++)
}

let folder
before(async () => {
  folder = await project()
})
after(() => rmSync(folder, { recursive: true, force: true }))

function node(args) {
  const options = { cwd: folder, encoding: 'utf8', timeout: PROGRAM_MS_MAX }
  return spawnSync(process.execPath, ['--no-warnings', ...TYPES, ...args], options)
}

/** The libraries of the table that a program uses. @param {string} file */
function usedBy(file) {
  const isUsed = (name) =>
    text(file).includes(`'${name}'`) || imports(file).some((other) => text(other).includes(`'${name}'`))
  return Object.keys(TRIED).filter(isUsed)
}
const text = (file) => blocks.find((block) => nameOf(block.text) === file)?.text ?? ''
const imports = (file) => [...text(file).matchAll(/'\.\/([\w-]+\.mts)'/g)].map(([, name]) => name)

test('the programs of the pages have right types', { skip: skipOf(0) }, () => {
  const compilerOptions = { rootDir: '.', noEmit: true, declaration: false, allowImportingTsExtensions: true }
  const options = { extends: inRoot('tsconfig.json'), include: ['*.mts'] }
  const config = join(folder, 'tsconfig.json')
  writeFileSync(config, JSON.stringify({ ...options, compilerOptions }))
  const { stdout } = spawnSync(process.execPath, [tsc(), '-p', config, '--pretty', 'false'], {
    encoding: 'utf8',
  })
  assert.equal(stdout, '')
  assert.ok(readdirSync(folder).filter((name) => name.endsWith('.mts')).length >= 15)
})

for (const { name, text, output } of blocks.filter(({ language }) => language === 'sh')) {
  const files = text.split('\n').flatMap((line) => (shellKind(line).kind === 'node' ? [line.slice(5)] : []))
  for (const file of files)
    test(`${name}: ${file} prints what the page shows`, { skip: whyNot(usedBy(file)) }, () => {
      const { status, stdout, stderr } = node([file])
      const errors = stderr.replace(/^corespun: serving .+\n/gm, '')
      assert.deepEqual({ status, stdout, errors }, { status: 0, stdout: output, errors: '' })
    })
}

for (const [library, expected] of Object.entries(TRIED))
  for (const [index, isolation] of ['thread', 'process'].entries())
    test(`${library}, isolation ${isolation}`, { skip: whyNot([library]) }, () => {
      const { status, signal, stdout, stderr } = node([
        inRoot('test', 'heavy', 'tried.mjs'),
        folder,
        library,
        isolation,
      ])
      const { endedMs: _, ...printed } = stdout === '' ? {} : JSON.parse(stdout)
      const seen = status === 0 ? printed : { signal }
      const possible = [expected[index]].flat()
      assert.deepEqual(seen, possible.find((each) => isDeepStrictEqual(each, seen)) ?? possible[0], stderr)
    })
