/**
 * Every code block of the documentation is run.
 *
 * `ts` blocks are compiled together by the strict settings of the checkout and run one by one as programs
 * that import `corespun`; a `text output` block right behind one is exactly what it prints. `sh` blocks are
 * run too; a line that serves until it gets an answer and then a signal. Lines that install are not run, and
 * of npm scripts it is only looked up that there are such: what they do has tests of its own. A block in
 * another language is prose. The programs of README.md are compiled here and run by door.test.mjs.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, test } from 'node:test'
import { filesBelow, inRoot, ROOT } from '../../scripts/set-up/index.mjs'
import { blocksIn, shellKind } from './blocks.mjs'
import { compilePrograms, PROGRAM_MS_MAX, programFolder, runProgram } from './programs.mjs'

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'docs']

const folder = programFolder('blocks-')

const paths = DOCUMENTS.flatMap((name) => filesBelow(inRoot(name), (path) => path.endsWith('.md')))
const blocks = paths.flatMap((path) => blocksIn(path.slice(ROOT.length), readFileSync(path, 'utf8')))
const programs = blocks.filter(({ language }) => language === 'ts')
const commands = blocks.filter(({ language }) => language === 'sh')
const isOfDoor = ({ name }) => name.startsWith('README')

test('there are programs and commands to run', () => {
  assert.ok(programs.length >= 2, `${programs.length} programs`)
  assert.ok(commands.length >= 2, `${commands.length} commands`)
})

test('the programs of the documentation have right types', () => {
  assert.equal(compilePrograms(folder, programs), '')
})

describe('programs', { concurrency: availableParallelism() }, () => {
  for (const { name, output } of programs.filter((block) => !isOfDoor(block))) {
    test(`${name} runs`, async () => {
      const stdout = await runProgram(folder, name)
      if (output !== undefined) assert.equal(stdout, output)
    })
  }
})

for (const { name, text } of commands) {
  const ofDoor = isOfDoor({ name })
  test(`${name} works as typed`, async () => {
    const scripts = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).scripts
    for (const line of text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))) {
      const { kind, word } = shellKind(line)
      if (kind === 'script') assert.ok(word in scripts, `${line}: package.json has no script ${word}`)
      if (kind === 'run' && !ofDoor) typed(line)
      if (kind === 'serve') await served(line)
      assert.notEqual(kind, 'unknown', `${line}: is this run, an npm script, or an install?`)
    }
  })
}

/** Run a line of shell where `npx corespun` and `corespun` are this checkout's. */
function typed(line) {
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', line], { ...shell(), timeout: PROGRAM_MS_MAX })
  assert.equal(status, 0, `${line}\n${stdout}${stderr}`)
}

/** Run a line that serves until it has answered; then it must end well by the signal of a terminal. */
async function served(line) {
  const child = spawn('sh', ['-euc', `exec ${line}`], { ...shell(), stdio: ['ignore', 'pipe', 'pipe'] })
  const late = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS_MAX)
  const ended = new Promise((resolve) => child.on('close', resolve))
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text))
  const url = await new Promise((resolve) => {
    void ended.then(() => resolve(undefined)) // resolves by 'close', never rejected
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
      const address = /http:\/\/\S+/.exec(output)?.[0]
      if (output.includes('\n') && address !== undefined) resolve(address)
    })
  })
  const status = url === undefined ? 'none' : (await fetch(url)).status
  child.kill('SIGINT')
  const code = await ended
  clearTimeout(late)
  assert.deepEqual([status, code], [200, 0], `${line}\n${output}`)
}

/** How a shell is started: in the checkout, whose `npx corespun` and `corespun` it runs. */
function shell() {
  const bin = join(folder, 'bin')
  const main = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).bin.corespun
  shim(join(bin, 'corespun'), `exec "${process.execPath}" "${inRoot(main)}" "$@"`)
  shim(join(bin, 'npx'), 'exec "$@"')
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) }
  return { cwd: ROOT, env, encoding: 'utf8' }
}

function shim(path, command) {
  if (existsSync(path)) return
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${command}\n`)
  chmodSync(path, 0o755)
}
