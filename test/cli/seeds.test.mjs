/**
 * `corespun test` as a process: parts of the seeds in several processes, what is printed of a find, and exit
 * codes.
 *
 * A dozen processes take some seconds.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { corespun, start } from './corespun.mjs'

const timeout = 120_000
const files = mkdtempSync(join(tmpdir(), 'corespun-seeds-'))
after(() => rmSync(files, { recursive: true }))

/** Runs the command on modules of modules/seeds. */
async function tested(names, words = [], env = {}) {
  const named = names.map((name) => `modules/seeds/${name}`)
  return corespun(['test', ...named, ...words], '', { env })
}

test('the seeds of each check are divided, and counted once', { timeout }, async () => {
  const { code, out, err } = await tested(['fine.mjs'], ['-w', '2', '--seeds', '30'])
  assert.match(out, /^modules\/seeds\/fine\.mjs:10: 30 seeds, [\d,]+ schedules, [\d,]+ steps\n/)
  assert.match(out, /\n2 checks, 30 seeds in \d+\.\d s\n$/)
  assert.deepEqual([code, err], [0, ''])
})

test('a process that ends behind its check has reported it', { timeout }, async () => {
  const { code, out } = await tested(['exits.mjs'], ['-w', '1'])
  assert.match(out, /^modules\/seeds\/exits\.mjs:8: 25,000 seeds, 25,\d{3} schedules, /)
  assert.equal(code, 0)
})

test('what a world has follows the seed in the installed package, too', { timeout }, async () => {
  const { code, out } = await tested(['world.mjs'], ['-w', '1'])
  assert.match(out, /^modules\/seeds\/world\.mjs:27: 4 seeds, [\d,]+ schedules, [\d,]+ steps\n1 check, /)
  assert.equal(code, 0)
})

test('the first seed that fails is printed once, with its story and its command', { timeout }, async () => {
  const { code, out } = await tested(['found.mts'], ['-w', '2'])
  assert.match(out, /^modules\/seeds\/found\.mts:12: CHECK_FAILED\nseed 7: it is 7\n +0 ms {2}main: begins/)
  assert.match(
    out,
    /\nplay it again: CORESPUN_SEED=7 npx corespun test modules\/seeds\/found\.mts\n1 check, 1 failed/,
  )
  assert.doesNotMatch(out, /it is 8/)
  assert.equal(code, 1)
  const alone = await tested(['found.mts'], ['--json'], { CORESPUN_SEED: '8' })
  const { message, ...found } = JSON.parse(alone.out)
  assert.match(message, /^seed 8: it is 8\n/)
  const at = { file: 'modules/seeds/found.mts', line: 12 }
  assert.deepEqual(found, { ...at, seeds: 0, schedules: 0, steps: 0, code: 'CHECK_FAILED', seed: 8 })
  assert.equal(alone.code, 1)
  const PADDING = ` ${'x'.repeat(30_000)} its end`
  const long = await tested(['found.mts'], ['-w', '1'], { CORESPUN_SEED: '7', PADDING })
  assert.match(long.out, /\nseed 7: it is 7 x+\n\.\.\.\nx+ its end\n/)
  assert.match(long.out, /\nplay it again: CORESPUN_SEED=7 npx corespun test modules\/seeds\/found\.mts\n/)
  assert.ok(long.out.length < 17_000, String(long.out.length))
})

test('what fails beside a check, calls none or does not end is named', { timeout }, async () => {
  const { code, out } = await tested(['broken.mjs', 'none.mjs'], ['-w', '1'])
  assert.match(out, /\nmodules\/seeds\/broken\.mjs: process 1\/1 has ended with code 3:\nthe reason\n/)
  assert.match(out, /\nmodules\/seeds\/none\.mjs: it calls no check\(\)\n/)
  assert.equal(code, 1)
  const left = await tested(['left.mjs'], ['-w', '1'])
  const before = 'process 1/1 has ended with code 0, before the check of modules/seeds/left.mjs:9'
  assert.ok(left.out.includes(`\nmodules/seeds/left.mjs: ${before}\n`), left.out)
  assert.equal(left.code, 1)
  const BEGUN = join(files, 'late')
  const late = await tested(['endless.mjs'], ['-w', '1', '-t', '2s', '--json'], { BEGUN })
  const error = 'process 1/1 has not ended after 2000 ms (--timeout)'
  assert.deepEqual(JSON.parse(late.out), { file: 'modules/seeds/endless.mjs', error, output: '' })
  assert.equal(late.code, 1)
})

test('wrong words are named', { timeout }, async () => {
  const rows = [
    [[], [], /^corespun: name the files whose checks to play \(corespun test --help shows how\)\n$/],
    [['fine.mjs'], ['--seeds', '0'], /^corespun: --seeds takes a whole number from 1 to 999999999, not "0"/],
    [['fin.mjs'], [], /^corespun: modules\/seeds\/fin\.mjs: no such module, .*did you mean .*fine\.mjs\?\n$/],
  ]
  for (const [names, words, message] of rows) {
    const { code, err } = await tested(names, words)
    assert.match(err, message)
    assert.equal(code, 2)
  }
  const { code, err } = await corespun(['test', 'node:path'])
  assert.match(err, /^corespun: node:path: no such module, .*name a file\n$/)
  assert.equal(code, 2)
  const help = await corespun(['test', '--help'])
  assert.match(help.out, /^corespun test: /)
})

test('Ctrl-C ends what runs', { timeout, skip: process.platform === 'win32' }, async () => {
  const BEGUN = join(files, 'begun')
  const started = start(['test', 'modules/seeds/endless.mjs', '-w', '1'], { env: { BEGUN } })
  const isThere = () => existsSync(BEGUN) && readFileSync(BEGUN, 'utf8') !== ''
  while (!isThere()) await pause(20)
  started.child.kill('SIGINT')
  const { code, out } = await started.ended
  assert.deepEqual([code, out.split(' in ')[0]], [130, '0 checks'])
  assert.throws(() => process.kill(Number(readFileSync(BEGUN, 'utf8')), 0), { code: 'ESRCH' })
})
