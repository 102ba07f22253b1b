/**
 * Bun and Deno: what works there, as a table, and files of the suite that pass there.
 *
 * The table is exact: what begins to work or to fail fails the test, and so does a refusal without a code, a
 * crash or a hang. They are installed below .set-up/ from a lock file of their own (the folder runtimes), and
 * run by `npm run test:all -- runtimes` alone.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { inRoot, installCopy, MEMORY, run } from '../../scripts/set-up/index.mjs'

const FOLDER = join(MEMORY, 'runtimes')
const PROGRAM = inRoot('test', 'package', 'runtime-program.mjs')
const COMMAND = inRoot('lib', 'cli', 'main.js')
const skip =
  process.env.CORESPUN_RUNTIMES === undefined
    ? 'CORESPUN_RUNTIMES is not set'
    : (process.platform !== 'linux' || process.arch !== 'x64') && 'the packages are for Linux x64'
/** Of one file. */
const SECONDS_MAX = 120

const LOAD = 'NATIVE_LOAD_FAILED'
const BOTH = ['arrow/api/arrow', 'fiber/core/exit', 'fiber/core/interrupt']
const RUNTIMES = {
  Bun: {
    path: ['@oven', 'bun-linux-x64', 'bin', 'bun'],
    test: ['test'],
    run: ['run'],
    runs: [0, /^"runtime-program\.mjs"\n$/],
    files: [...BOTH, 'arrow/api/stream', 'fiber/core/fiber', 'fiber/core/children', 'sync/sync'],
    answers: {
      arrow: '9',
      fiber: '7',
      'http on node:http': 'Hello',
      'http on the native core': 'HTTP_CORE',
      store: '{"a":[1,2]}',
      semaphore: '5',
      'a function of a module in a zone': '8',
      'a function that is sent': '8',
      'a captured value': 'FUNCTION_CAPTURES',
      'the plugin as a hook': 'FUNCTION_HOOKS',
      'shared memory as an argument': 'TRANSPORT_REFUSED',
      'a server in a zone': 'TRANSPORT_REFUSED',
    },
  },
  Deno: {
    path: ['@deno', 'linux-x64-glibc', 'deno'],
    test: ['test', '--allow-all', '--no-check'],
    run: ['run', '--allow-all', '--no-check'],
    runs: [2, /^corespun: corespun could not load its native core \S+: undefined symbol: .+ lacks\. .+\n$/],
    files: [...BOTH, 'transport/values'],
    answers: {
      arrow: '9',
      fiber: '7',
      'http on node:http': 'Hello',
      'http on the native core': 'HTTP_CORE',
      store: LOAD,
      semaphore: LOAD,
      'a function of a module in a zone': LOAD,
      'a function that is sent': LOAD,
      'a captured value': LOAD,
      'the plugin as a hook': 'loaded',
      'shared memory as an argument': LOAD,
      'a server in a zone': LOAD,
    },
  },
}

const started = async (name, args) => {
  const env = { ...process.env, DENO_DIR: join(FOLDER, 'deno'), DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' }
  const program = join(FOLDER, 'node_modules', ...RUNTIMES[name].path)
  return run(program, args, { env: { ...env, TMPDIR: FOLDER }, secondsMax: SECONDS_MAX })
}

before(async () => {
  if (skip !== false) return
  await installCopy('Bun and Deno', inRoot('test', 'package', 'runtimes'), FOLDER)
})

for (const [name, { test: tests, run: flags, runs, files, answers }] of Object.entries(RUNTIMES)) {
  test(`${name}: the table`, { skip }, async () => {
    const expected = Object.entries(answers).map(([what, answer]) => `${what}: ${answer}\n`)
    const { code, output } = await started(name, [...flags, PROGRAM])
    assert.equal(code, 0, output)
    assert.equal(output.slice(output.indexOf('the table\n')), `the table\n${expected.join('')}`)
  })
  const refusal = new RegExp(`^corespun: the command serve needs Node, and this is ${name} [\\d.]+; .+\n$`)
  const commands = [[], ['--core', 'node'], ['--watch']].map((words) => [
    ['serve', ...words],
    [2, refusal],
  ])
  for (const [words, [code, pattern]] of [...commands, [['run', 'node:path#basename'], runs]])
    test(`${name}: corespun ${words.join(' ')}`, { skip }, async () => {
      const ended = await started(name, [...flags, COMMAND, ...words, PROGRAM])
      assert.match(ended.output, pattern)
      assert.equal(ended.code, code, ended.output)
    })
  for (const file of files)
    test(`${name}: ${file}`, { skip }, async () => {
      const { code, output } = await started(name, [...tests, inRoot('dist', `${file}.test.js`)])
      assert.equal(code, 0, output)
    })
}
