/**
 * The reporter of failures on planted ones: each is named once with its file and reason, and what passes is
 * not.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const FAILURES = new URL('./failures.mjs', import.meta.url).href
const folder = mkdtempSync(join(tmpdir(), 'corespun-reporter-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function report(name, body) {
  const file = join(folder, `${name}.test.mjs`)
  writeFileSync(file, `import { test } from 'node:test'\n${body}\n`)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', `--test-reporter=${FAILURES}`, file]
  return spawnSync(process.execPath, args, { encoding: 'utf8', env, cwd: folder }).stdout
}

test('what passes, is skipped or is to be done prints nothing', () => {
  const body = `test('a', () => {})
    test('b', { skip: true }, () => {})
    test('c', { todo: true }, () => { throw new Error('later') })`
  assert.equal(report('passes', body), '')
})

test('a failure inside another is named once, with its message over several lines and its stack', () => {
  const body = `test('outer', (t) => t.test('inner', () => { throw new Error('one\\ntwo') }))`
  const text = report('nested', body)
  assert.match(text, /^✖ nested\.test\.mjs: inner \(\d+ ms\)\n {4}Error: one\n {4}two\n {8}at /)
  assert.doesNotMatch(text, /outer \(/)
})

test('what throws no error is named too', () => {
  assert.match(
    report('thrown', `test('a', () => { throw 'a word' })`),
    /thrown\.test\.mjs: a \(.*\n {4}a word\n/,
  )
})

test('a test that takes too long is reported', () => {
  const body = `test('slow', { timeout: 20 }, () => new Promise((end) => setTimeout(end, 300)))`
  assert.match(report('slow', body), /slow\.test\.mjs: slow \(.*\n {4}test timed out after 20ms/)
})

test('a file that fails by itself comes with the last that it wrote', () => {
  const body = `test('a', () => {})
    process.on('exit', () => { process.stderr.write('leak: a thread\\n'); process.exitCode = 1 })`
  const text = report('crashed', body)
  assert.match(text, /^✖ crashed\.test\.mjs \(/)
  assert.match(text, /crashed\.test\.mjs wrote last:\n {4}leak: a thread\n/)
})
