/**
 * Bun and Deno: what works there, as a table, and files of the suite that pass there.
 *
 * The table is exact: what begins to work or to fail fails the step, and so does a refusal without a code, a
 * crash or a hang. They are installed below .set-up/ from a lock file of their own (scripts/runtimes).
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inRoot, install, locked, MEMORY, run } from '../set-up/index.mjs'

const FOLDER = join(MEMORY, 'runtimes')
const PROGRAM = fileURLToPath(new URL('./runtime-program.mjs', import.meta.url))
const COMMAND = inRoot('lib', 'cli', 'main.js')
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

/**
 * Run the table and the files; elsewhere than on Linux x64 it is skipped.
 * @returns {Promise<number>} 0 when all is as expected.
 */
export async function otherRuntimes() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    console.log(`skipped: the packages are for Linux x64, and this is ${process.platform} ${process.arch}`)
    return 0
  }
  await locked(FOLDER, async () => {
    cpSync(inRoot('scripts', 'runtimes'), FOLDER, { recursive: true, preserveTimestamps: true })
    await install('Bun and Deno', FOLDER)
  })
  let failed = 0
  for (const [name, { path, test, run: flags, runs, files, answers }] of Object.entries(RUNTIMES)) {
    const program = join(FOLDER, 'node_modules', ...path)
    const started = async (title, args, isRight, codeExpected = 0) => {
      const env = { ...process.env, DENO_DIR: join(FOLDER, 'deno'), DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' }
      const { code, output } = await run(program, args, { env, secondsMax: SECONDS_MAX })
      const isPassed = code === codeExpected && isRight(output)
      console.log(`${isPassed ? 'pass' : 'FAIL'}  ${name}  ${title}`)
      if (isPassed) return
      console.log(output)
      failed += 1
    }
    const expected = Object.entries(answers).map(([what, answer]) => `${what}: ${answer}\n`)
    const isEqual = (output) => output.endsWith(`the table\n${expected.join('')}`)
    await started('the table', [...flags, PROGRAM], isEqual)
    const refusal = new RegExp(`^corespun: the command serve needs Node, and this is ${name} [\\d.]+; .+\n$`)
    const commands = [[], ['--core', 'node'], ['--watch']].map((words) => [
      ['serve', ...words],
      [2, refusal],
    ])
    commands.push([['run', 'node:path#basename'], runs])
    for (const [words, [codeExpected, expectedOutput]] of commands) {
      const isRight = (output) => expectedOutput.test(output)
      const title = `corespun ${words.join(' ')}`
      await started(title, [...flags, COMMAND, ...words, PROGRAM], isRight, codeExpected)
    }
    for (const file of files) await started(file, [...test, inRoot('dist', `${file}.test.js`)], () => true)
  }
  return failed === 0 ? 0 : 1
}
