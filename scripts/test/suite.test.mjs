/**
 * Which files a word chooses, and what becomes of a file that failed, on planted ones.
 * They are run as the suite runs its own.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { filesBelow, inRoot, ROOT, run } from '../set-up/index.mjs'
import {
  betweenOf,
  BY_NODE,
  chosenBy,
  fastOf,
  longestFirst,
  newestOf,
  quickOf,
  shortOf,
  testFiles,
} from './files.mjs'
import { emptyReport, runAgain } from './report.mjs'
import { runFiles } from './suite.mjs'

const PATHS = [
  'dist/fiber/core/fiber.test.js',
  'dist/fiber/fiber.test.js',
  'dist/zone/limits.test.js',
  'test/zone/sandbox.test.mjs',
]

test('a word chooses by a part of the path; a path in src by what it is compiled to', () => {
  const cases = [
    ['zone', ['dist/zone/limits.test.js', 'test/zone/sandbox.test.mjs']],
    ['src/fiber', ['dist/fiber/core/fiber.test.js', 'dist/fiber/fiber.test.js']],
    ['./src/fiber/core/', ['dist/fiber/core/fiber.test.js']],
    ['src/fiber/core/fiber.ts', ['dist/fiber/core/fiber.test.js']],
    ['src/fiber/core/fiber.test.ts', ['dist/fiber/core/fiber.test.js']],
    // A file without tests of its own means its folder's, or those of the next folder above.
    ['src/fiber/core/other.ts', ['dist/fiber/core/fiber.test.js']],
    ['src/zone/call/call.ts', ['dist/zone/limits.test.js']],
    [inRoot('src', 'zone', 'limits.test.ts'), ['dist/zone/limits.test.js']],
    ['src/nowhere/a.ts', []],
  ]
  for (const [word, expected] of cases) assert.deepEqual(chosenBy(word, PATHS), expected, word)
})

test('the fast suite has no file whose time is known, and every time is of a file', () => {
  const seconds = JSON.parse(readFileSync(new URL('seconds.json', import.meta.url), 'utf8'))
  const files = testFiles()
  const quick = quickOf(files)
  assert.ok(quick.length > 100)
  assert.deepEqual(new Set([...quick, ...Object.keys(seconds)]), new Set(fastOf(files)))
  const short = shortOf(files)
  assert.ok(quick.length < short.length && short.length < fastOf(files).length)
  const [first, second] = longestFirst(files)
  assert.ok(seconds[first] >= seconds[second])
})

test('each row of what depends on the Node chooses files, and none chooses those of another', () => {
  const counts = new Map(BY_NODE.map(([, why]) => [why, 0]))
  for (const path of testFiles()) {
    const rows = BY_NODE.filter(([chooses]) => chooses.test(path))
    assert.ok(rows.length <= 1, path)
    // Under coverage these do not run in a newer Node.
    if (/runsHere\(import/.test(readFileSync(inRoot(path), 'utf8'))) assert.equal(rows.length, 1, path)
    for (const [, why] of rows) counts.set(why, counts.get(why) + 1)
  }
  for (const [why, count] of counts) assert.ok(count > 0, why)
})

test('what takes long and depends on the Node runs on one of the newest, or in parts on both', () => {
  const [parted, whole] = ['test/heavy/heavy.test.mjs', 'dist/http/uploads.test.js']
  const paths = [parted, whole, 'dist/store/threads.test.js', 'dist/fiber/scale.test.js']
  assert.deepEqual(betweenOf(paths), [])
  assert.deepEqual([...newestOf(paths, 2), ...newestOf(paths, 3)].sort(), [whole, parted, parted].sort())
})

test('the suite runs the modules and the tests of dist, and its source maps lead to src', async () => {
  // The threads of the bundler stay for good: in a process of their own.
  const program = `import { joined } from './scripts/test/joined.mjs'
console.log(JSON.stringify(await joined(['dist/a.test.js', 'test/b.test.mjs'])))`
  const { code, output } = await run(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT })
  assert.equal(code, 0, output)
  assert.deepEqual(JSON.parse(output), ['joined/a.test.js', 'test/b.test.mjs'])
  const isModule = (path) => path.endsWith('.js')
  const below = (folder) => filesBelow(folder, isModule).map((path) => relative(folder, path))
  const [made, compiled] = [inRoot('joined'), inRoot('dist')].map(below)
  for (const path of compiled) assert.ok(made.includes(path), path)
  const { sources } = JSON.parse(readFileSync(inRoot('joined', 'chunks', 'zone.js.map'), 'utf8'))
  assert.ok(sources.includes('../../src/zone/api/zones.ts'), sources.join(' '))
})

const folder = mkdtempSync(join(tmpdir(), 'corespun-suite-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const PASSES = `test('passes', () => {})`
const FAILS = `test('fails', () => { throw new Error('always') })`
const FAILS_ONCE = `test('fails once', () => {
  const mark = new URL('mark', import.meta.url)
  if (existsSync(mark)) return
  writeFileSync(mark, '')
  throw new Error('by chance')
})`

/** Run planted files as the suite would; their output would confuse the runner that runs this. */
async function planted(bodies) {
  const files = Object.entries(bodies).map(([name, body]) => {
    const file = join(folder, `${name}.test.mjs`)
    const imports = `import { test } from 'node:test'\nimport { existsSync, writeFileSync } from 'node:fs'\n`
    writeFileSync(file, imports + body)
    return relative(ROOT, file)
  })
  rmSync(join(folder, 'mark'), { force: true })
  const report = emptyReport()
  const node = { name: 'this Node', path: process.execPath }
  const code = (await runFiles(files, node, report)) + (await runAgain(report))
  return { code, ...report }
}

test('a file that fails and passes alone is named as flaky, and the run passes', async () => {
  const { code, failures, flaky } = await planted({ passes: PASSES, once: FAILS_ONCE })
  assert.equal(code, 0)
  assert.deepEqual(failures, [])
  assert.equal(flaky.length, 1)
  assert.match(flaky[0], /once\.test\.mjs on this Node\n[^]*by chance/)
})

test('a file that fails by itself comes with the last that it wrote', async () => {
  const leaves = `process.on('exit', () => { console.error('leak: a thread'); process.exitCode = 1 })`
  const { code, failures } = await planted({ crashed: `${PASSES}\n${leaves}` })
  assert.equal(code, 1)
  assert.match(failures[0], /crashed\.test\.mjs on this Node\n✖ ended with 1\n[^]* {4}leak: a thread\n/)
})

test('a file that fails twice fails the run, also beside a flaky one', async () => {
  const { code, failures, flaky } = await planted({ fails: FAILS, once: FAILS_ONCE })
  assert.equal(code, 1)
  assert.match(failures[0], /fails\.test\.mjs on this Node\n✖ fails .*\n +Error: always\n/)
  assert.match(flaky[0], /once\.test\.mjs/)
})
