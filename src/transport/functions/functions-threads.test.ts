/**
 * Functions in real worker threads, from callers of every kind, under the flags that change what is allowed.
 *
 * Each case is a program of its own, run by this Node: it numbers functions, a worker that shares nothing
 * with it but the texts runs them, and what comes back is compared.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'

const functionsUrl = new URL('./functions.js', import.meta.url).href
const coreUrl = new URL('../internal.js', import.meta.url).href
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-functions-')))
after(() => rmSync(folder, { recursive: true }))

/** The far side: a thread that receives the texts and runs a function of them. */
const worker = `
  import { parentPort } from 'node:worker_threads'
  import { functionByNumber, setFunctionTable } from ${JSON.stringify(functionsUrl)}
  const texts = []
  setFunctionTable({ intern: () => 0, interned: (number) => texts[number] })
  parentPort.on('message', async ({ number, text, args }) => {
    texts[number] = text
    try {
      parentPort.postMessage({ value: await (await functionByNumber(number))(...args) })
    } catch (error) {
      parentPort.postMessage({ stack: error.stack, code: error.code })
    }
  })
`
/** The near side: far(number, ...args) runs in one worker that runs as long as the program. */
const harness = `
  import { Worker } from 'node:worker_threads'
  import * as functions from ${JSON.stringify(functionsUrl)}
  const texts = [undefined]
  const intern = (text) => texts.indexOf(text) > 0 ? texts.indexOf(text) : texts.push(text) - 1
  functions.setFunctionTable({ intern, interned: (number) => texts[number] })
  const worker = new Worker(new URL('./worker.mjs', import.meta.url))
  worker.unref()
  export const far = (number, ...args) => new Promise((resolve, reject) => {
    worker.ref()
    worker.once('message', (answer) => { worker.unref(); resolve(answer.stack ? answer : answer.value) })
    worker.once('error', reject)
    worker.postMessage({ number, text: texts[number], args })
  })
  export const go = (fn, ...args) => far(functions.functionNumber(fn), ...args)
  export const code = (fn) => {
    try { functions.functionNumber(fn) } catch (error) { return error.code }
    return 'accepted'
  }
  export const { moduleFunctionNumber, functionNumber, codeNumber } = functions
`
mkdirSync(join(folder, 'sub'))
writeFileSync(join(folder, 'worker.mjs'), worker)
writeFileSync(join(folder, 'harness.mjs'), harness)
const add = 'add = (a, b) => a + b'
writeFileSync(join(folder, 'sub/beside.mjs'), `export const url = import.meta.url; export const ${add}`)
writeFileSync(join(folder, 'sub/beside.cjs'), `exports.path = __filename; exports.${add}`)

/** Run a program; what it prints with `out(...)` must be these values. */
function check(name: string, program: string, expected: unknown[], flags: readonly string[] = []): void {
  const file = join(folder, 'sub', name)
  writeFileSync(file, program)
  const env = { ...process.env, NODE_OPTIONS: '' }
  const text = execFileSync(process.execPath, [...flags, file], { encoding: 'utf8', env })
  assert.deepEqual(
    text
      .trim()
      .split('\n')
      .map((each) => JSON.parse(each) as unknown),
    expected,
  )
}

const url = (name: string): string => pathToFileURL(join(folder, 'sub', name)).href
const path = (name: string): string => join(folder, 'sub', name)

const esm = `import { go, far, code, moduleFunctionNumber, codeNumber } from '../harness.mjs'
import { add } from './beside.mjs'
const out = (value) => console.log(JSON.stringify(value))
`

test('a module of ECMAScript', () => {
  const program = `${esm}
out(await go((a, b) => a + b, 1, 2))
out(await go(async () => (await import('./beside.mjs')).url))
out(await go(() => [require('./beside.cjs').path, __filename, __dirname]))
out(await go(() => [import.meta.url, import.meta.filename, import.meta.resolve('./x.js')]))
out(await go(function () { return this === undefined }))
out(code(() => add(1, 2)))
const thrown = await go(function fails() {
  throw new Error('there')
})
out(thrown.stack.split('\\n')[1].trim())
out(await far(moduleFunctionNumber('./beside.mjs', 'add', import.meta.url), 3, 4))
out((await far(moduleFunctionNumber('./nowhere.mjs', 'add', import.meta.url))).code)
await far(codeNumber('var kept = 5', import.meta.url))
out(await go(() => ++kept))
`
  const line = program.split('\n').findIndex((each) => each.includes('there')) + 1
  check('caller.mjs', program, [
    3,
    url('beside.mjs'),
    [path('beside.cjs'), path('caller.mjs'), dirname(path('x'))],
    [url('caller.mjs'), path('caller.mjs'), url('x.js')],
    true,
    'FUNCTION_CAPTURES',
    `at fails (${url('caller.mjs')}:${line}:9)`,
    7,
    'FUNCTION_MODULE',
    6,
  ])
})

const cjs = `const out = (value) => console.log(JSON.stringify(value))
const captured = 1
import('../harness.mjs').then(async ({ go, code }) => {
`

test('a CommonJS module, sloppy', () => {
  const program = `${cjs}
out(await go((a, b) => a + b, 1, 2))
out(await go(async () => (await import('./beside.mjs')).url))
out(await go(() => [require('./beside.cjs').path, __filename, __dirname]))
out(await go(function () { return typeof this }))
out(await go((a) => { undeclared = a; return undeclared }, 4))
out(await go({ method(a) { alsoUndeclared = a; return alsoUndeclared } }.method, 5))
out((await go(class { static strict() { never = 1 } }.strict)).stack.split('\\n')[0])
out((await go(() => { 'use strict'; never = 1 })).stack.split('\\n')[0])
out([code(() => captured), code(() => module), code(() => exports)])
})`
  const reference = 'ReferenceError: never is not defined'
  check('caller.cjs', program, [
    3,
    url('beside.mjs'),
    [path('beside.cjs'), path('caller.cjs'), dirname(path('x'))],
    'object',
    4,
    5,
    reference,
    reference,
    ['FUNCTION_CAPTURES', 'FUNCTION_CAPTURES', 'FUNCTION_CAPTURES'],
  ])
})

test('a CommonJS module, strict', () => {
  const program = `'use strict'\n${cjs}
out(await go(function () { return typeof this }))
out((await go(() => { never = 1 })).stack.split('\\n')[0])
})`
  check('strict.cjs', program, ['undefined', 'ReferenceError: never is not defined'])
})

test('code generation from strings forbidden', () => {
  const program = `${esm}
out(await go((a, b) => a + b, 1, 2))
out(await go(async () => (await import('./beside.mjs')).url))
out(code(() => out))
let generates = true
try { new Function('1') } catch { generates = false }
out(generates)
`
  check(
    'forbidden.mjs',
    program,
    [3, url('beside.mjs'), 'FUNCTION_CAPTURES', false],
    ['--disallow-code-generation-from-strings'],
  )
})

test('source maps enabled', () => {
  const program = `${esm}
const thrown = await go(function fails() {
  throw new Error('there')
})
out(thrown.stack.split('\\n').find((each) => each.includes('fails')).trim())
`
  check('mapped.mjs', program, [`at fails (${url('mapped.mjs')}:6:9)`], ['--enable-source-maps'])
})

const [major, minor] = process.versions.node.split('.').map(Number) as [number, number]

test('without the inspector, functions that need it are refused by code, the others travel', () => {
  const permission = major >= 24 ? '--permission' : '--experimental-permission'
  const program = `${esm}
out(await go((a, b) => Math.max(a, b), 1, 2))
out(code(() => import('./beside.mjs')))
out(code(() => import.meta.url))
const outside = 5
out(code(() => outside + 1))
out(await go(() => typeof outside))
out(await go(function itself(n) { return n === 0 ? 'end' : itself(n - 1) }, 2))
out(await far(moduleFunctionNumber('./beside.mjs', 'add', import.meta.url), 3, 4))
`
  check(
    'permitted.mjs',
    program,
    [2, 'FUNCTION_FILE_UNKNOWN', 'FUNCTION_FILE_UNKNOWN', 'FUNCTION_CAPTURES', 'undefined', 'end', 7],
    ['--no-warnings', permission, '--allow-fs-read=*', '--allow-worker'],
  )
})

test('TypeScript that Node runs by itself', { skip: major < 22 && 'this Node does not strip types' }, () => {
  const flags = major === 22 && minor < 18 ? ['--experimental-strip-types'] : []
  const program = `${esm.replace("'./beside.mjs'", "'./beside.mjs' // A comment")}
interface Pair { a: number; b: number }
const outer: number = 1
out(await go((pair: Pair): number => pair.a + pair.b, { a: 1, b: 2 }))
out(await go(async <T>(value: T): Promise<T> => value satisfies T, 7))
out(code((): number => outer))
const thrown = await go(function fails(this: unknown, a?: number): never {
  throw new Error('there') as Error
})
out(thrown.stack.split('\\n')[1].trim())
`
  const line = program.split('\n').findIndex((each) => each.includes('there')) + 1
  check(
    'typed.mts',
    program,
    [3, 7, 'FUNCTION_CAPTURES', `at fails (${url('typed.mts')}:${line}:9)`],
    ['--no-warnings', ...flags],
  )
})

test('functions of eval, of -e and of a worker of its own', () => {
  const program = `${esm}
out(await go(new Function('a', 'return a + 1'), 1))
out(await go(eval('(a) => a + 2'), 1))
import { Worker } from 'node:worker_threads'
const harness = JSON.stringify(new URL('../harness.mjs', import.meta.url).href)
const source = 'import(' + harness + ').then(async (h) => {' +
  'require("node:worker_threads").parentPort.postMessage([await h.go((a) => a + 3, 1), h.code(() => h)]) })'
new Worker(source, { eval: true }).once('message', out)
`
  check('made.mjs', program, [2, 3, [4, 'FUNCTION_CAPTURES']])
})

test('with the native core, functions are identified by location', () => {
  const program = `import { functionByNumber, functionNumber } from ${JSON.stringify(coreUrl)}
const out = (value) => console.log(JSON.stringify(value))
const make = () => () => Math.max(1, 2)
const numbers = new Set(Array.from({ length: 300 }, () => functionNumber(make())))
out(numbers.size)
const elsewhere = () => Math.max(1, 2)
out(numbers.has(functionNumber(elsewhere)))
const shadowed = ((Math) => () => Math.max(1, 2))({ max: () => 'mine' })
try { functionNumber(shadowed) } catch (error) { out(error.code) }
const recursive = (other) => {
  let rec = (n) => n && rec(n - 1)
  const made = rec
  rec = other ?? rec
  return made
}
const code = (fn) => { try { functionNumber(fn); return 'accepted' } catch (error) { return error.code } }
out([code(recursive()), code(recursive(() => 1)), code(recursive())])
out([1, 2].map((n) => functionByNumber(functionNumber(new Function('return ' + n)))()))
out([Math.max, new Proxy(make(), {}), make().bind(1), class {}].map(code))
`
  check('core.mjs', program, [
    1,
    false,
    'FUNCTION_CAPTURES',
    ['accepted', 'FUNCTION_CAPTURES', 'accepted'],
    [1, 2],
    ['FUNCTION_NATIVE', 'FUNCTION_NATIVE', 'FUNCTION_BOUND', 'FUNCTION_CLASS'],
  ])
})
