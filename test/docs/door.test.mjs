/**
 * README.md, typed as it is printed into a project that `npm init -y` has made: its programs in the order of
 * the page, each under the name in its first line, and its commands, which print what the page shows.
 *
 * Where Node does not strip types, `node` loads `corespun/typescript`, as the page asks its readers to.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { blocksIn, nameOf, shellKind } from './blocks.mjs'
import { PROGRAM_MS_MAX } from './programs.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-door-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const main = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).bin.corespun
const node = JSON.stringify(process.execPath)
const stripping = process.features.typescript ? '' : '--import corespun/typescript'

function shell(line) {
  const typed = line
    .replace(/^npx corespun\b/, `${node} ${JSON.stringify(inRoot(main))}`)
    .replace(/^node\b/, `${node} ${stripping}`)
  const env = { ...process.env, NODE_NO_WARNINGS: '1' }
  const options = { cwd: folder, env, encoding: 'utf8', timeout: PROGRAM_MS_MAX }
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', typed], options)
  assert.equal(status, 0, `${line}\n${stdout}${stderr}`)
  return stdout
}

/** A text whose figures do not count. @param {string} text */
const shapeOf = (text) =>
  text
    .replace(/[\d.,]+( [nµm]?s)?/g, '#')
    .replace(/ +/g, ' ')
    .trim()

const blocks = blocksIn('README.md', readFileSync(inRoot('README.md'), 'utf8'))

test('the project is what `npm init -y` makes', () => {
  shell('npm init -y')
  assert.equal(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version, '1.0.0')
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'))
})

test('every program of the page has a name, and a command that runs it', () => {
  const names = blocks.filter(({ language }) => language === 'ts').map(({ text }) => nameOf(text))
  const commands = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
  assert.ok(names.length >= 5, `${names.length} programs`)
  for (const name of names) {
    const others = blocks.filter(({ text }) => nameOf(text) !== name).map(({ text }) => text)
    assert.ok(
      [...commands, ...others].some((text) => text.includes(name)),
      name,
    )
  }
})

for (const [index, { name, language, text, output }] of blocks.entries()) {
  if (language === 'ts') test(`${name} is typed`, () => writeFileSync(join(folder, nameOf(text)), text))
  if (language !== 'sh') continue
  const lines = text.split('\n').filter((line) => ['run', 'node'].includes(shellKind(line).kind))
  if (lines.length === 0) continue
  test(`${name} prints what the page shows`, () => {
    const printed = lines.map(shell).join('')
    if (output !== undefined) assert.equal(printed, output)
    const shown = blocks[index + 1]
    if (shown?.language === 'text') assert.equal(shapeOf(printed), shapeOf(shown.text))
  })
}
