/**
 * The pages for a new project, typed as they are printed into one that `npm init -y` has made: README.md, the
 * quick starts, the migrations and the notes on a version, a project each. The programs are typed in
 * the order of the page, each under the name in its first line; the commands must print what the page shows.
 */
import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { skipOf } from '../../dist/base/part.test.support.js'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { blocksIn, isOfDoor, nameOf, shellKind } from './blocks.mjs'
import { SQLITE_NODE, hasSqlite } from './programs.mjs'
import { Shell } from './shell.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-door-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A text whose figures do not count. @param {string} text */
const shapeOf = (text) =>
  text
    .replace(/[\d.,]+( [nµm]?s)?/g, '#')
    .replace(/ +/g, ' ')
    .trim()

const documents = ['docs', 'docs/guide'].flatMap((of) =>
  readdirSync(inRoot(of)).map((name) => `${of}/${name}`),
)
const pages = ['README.md', ...documents.filter(isOfDoor)]
test('README.md, quick starts, migrations and notes', () => assert.ok(pages.length >= 10, pages.join()))

for (const [index, page] of pages.entries())
  describe(page, { skip: skipOf(index) }, () => typedIn(page, join(folder, `page-${index}`)))

function typedIn(page, project) {
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  symlinkSync(inRoot(), join(project, 'node_modules', 'corespun'))
  const blocks = blocksIn(page, readFileSync(inRoot(page), 'utf8'))
  const hasFile = blocks.some(({ language, text }) => language === 'ts' && hasSqlite(text))
  if (hasFile && SQLITE_NODE === undefined) return test('without a Node that has SQLite', { skip: true })
  const shell = new Shell(project, hasFile ? SQLITE_NODE : process.execPath)

  test('the project is what `npm init -y` makes', () => {
    shell.typed('npm init -y')
    assert.equal(JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')).version, '1.0.0')
  })

  test('every program of the page has a name, and a command that runs it', () => {
    const names = blocks.filter(({ language }) => language === 'ts').map(({ text }) => nameOf(text))
    const commands = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
    assert.ok(names.length >= (page === 'README.md' ? 5 : 1), `${names.length} programs`)
    for (const name of names) {
      const others = blocks.filter(({ text }) => nameOf(text) !== name).map(({ text }) => text)
      assert.ok(
        [...commands, ...others].some((text) => text.includes(name)),
        name,
      )
    }
  })

  for (const [at, { name, language, text, output }] of blocks.entries()) {
    if (language === 'ts') test(`${name} is typed`, () => writeFileSync(join(project, nameOf(text)), text))
    if (language !== 'sh') continue
    for (const line of text.split('\n').filter((line) => shellKind(line).kind === 'serve'))
      test(`${name} serves`, async () => {
        const next = blocks[at + 1]
        const isAsked = shellKind(next?.text ?? '').kind === 'curl'
        const printed = await shell.served(line, isAsked ? next.text.trim() : undefined)
        if (isAsked) assert.equal(`${printed}\n`, next.output)
      })
    const lines = text.split('\n').filter((line) => ['run', 'node'].includes(shellKind(line).kind))
    if (lines.length === 0) continue
    test(`${name} prints what the page shows`, () => {
      const printed = lines.map((line) => shell.typed(line)).join('')
      if (output !== undefined) assert.equal(printed, output)
      const shown = blocks[at + 1]
      if (shown?.language === 'text') assert.equal(shapeOf(printed), shapeOf(shown.text))
    })
  }
}
