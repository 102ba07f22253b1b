/**
 * TypeScript modules in main threads and workers of this Node, whatever it does by itself.
 *
 * Each case is a program of its own. With `--no-experimental-strip-types` a Node that strips types behaves
 * like one that does not, so the hooks are tested on every version; without it, that they stay away.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { formatOf, isTypeScript, stripTypes } from './strip.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-loader-')))
after(() => rmSync(folder, { recursive: true }))

const loaderUrl = JSON.stringify(new URL('./index.js', import.meta.url).href)
const functionsUrl = JSON.stringify(
  new URL('../../../transport/functions/functions.js', import.meta.url).href,
)

const files: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'add.ts': `import type { Pair } from './types.ts'
import { type Name, one } from './one.mts'
export const add = (pair: Pair): number => pair.a + pair.b + one
export const name = (value: Name): Name => value satisfies Name
export const url: string = import.meta.url
export function fails<T>(value?: T): never { throw new Error(String(value as unknown)) }
`,
  'types.ts': 'export interface Pair { readonly a: number; readonly b: number }\n',
  'one.mts': 'export type Name = string\nexport const one: number = 1\n',
  'common.cts': `const { deep } = require('./deep.cts')
exports.twice = (x: number): number => deep(x) * 2
`,
  'deep.cts': 'exports.deep = (x: number): number => x as number\n',
  'untyped/package.json': '{}',
  'untyped/module.ts': 'export const kind: string = typeof require\n',
  'untyped/common.ts': 'exports.kind = (typeof require) as string\n',
  'enum.ts': 'export const before = 1\nexport enum Colour { red }\n',
  'property.ts': 'export class A { constructor(private x: number) {} }\n',
  'broken.ts': 'export const x: = 1\n',
  'node_modules/packed/package.json': '{ "type": "module", "exports": "./index.ts" }',
  'node_modules/packed/index.ts': 'export const packed: number = 1\n',
  'worker.mjs': `import { parentPort, workerData } from 'node:worker_threads'
import { installTypeScript } from ${loaderUrl}
import { functionByNumber, setFunctionTable } from ${functionsUrl}
setFunctionTable({ intern: () => 0, interned: () => workerData })
installTypeScript()
try {
  parentPort.postMessage(await (await functionByNumber(1))({ a: 1, b: 2 }))
} catch (error) {
  parentPort.postMessage(error.code + ' ' + error.message)
}
`,
}
for (const [name, text] of Object.entries(files)) {
  mkdirSync(join(folder, name, '..'), { recursive: true })
  writeFileSync(join(folder, name), text)
}
const url = (name: string): string => pathToFileURL(join(folder, name)).href

const [major, minor] = process.versions.node.split('.').map(Number) as [number, number]
const strips = major > 22 || (major === 22 && minor >= 18)
/** Node by itself, and as a Node that strips nothing. */
const modes = strips ? [[], ['--no-experimental-strip-types']] : [[]]

/** Run a program under each mode; what it prints with `out(...)` must be these values. */
function check(program: string, expected: readonly unknown[]): void {
  const file = join(folder, 'program.mjs')
  writeFileSync(
    file,
    `import { installTypeScript } from ${loaderUrl}
import { createRequire } from 'node:module'
const out = (value) => console.log(JSON.stringify(value))
const failure = (promise) => promise.then(() => 'loaded', (error) => [error.name, error.code])
${program}`,
  )
  for (const flags of modes) {
    const env = { ...process.env, NODE_OPTIONS: '' }
    const text = execFileSync(process.execPath, ['--no-warnings', ...flags, file], { encoding: 'utf8', env })
    const lines = text.trim().split('\n')
    assert.deepEqual(
      lines.map((each) => JSON.parse(each) as unknown),
      expected,
      flags.join(),
    )
  }
}

test('a module imports modules, with types erased and positions kept', () => {
  check(
    `installTypeScript()
installTypeScript()
const { add, name, url, fails } = await import('./add.ts')
out([add({ a: 1, b: 2 }), name('x'), url])
try { fails() } catch (error) { out(error.stack.split('\\n')[1].trim()) }
`,
    [[4, 'x', url('add.ts')], `at fails (${url('add.ts')}:6:52)`],
  )
})

test('CommonJS modules load by import and by require', () => {
  check(
    `installTypeScript()
out((await import('./common.cts')).default.twice(4))
const require = createRequire(import.meta.url)
out(require('./common.cts').twice(5))
out([(await import('./untyped/module.ts')).kind, (await import('./untyped/common.ts')).default.kind])
out(require('./untyped/common.ts').kind)
`,
    [8, 10, ['undefined', 'function'], 'function'],
  )
})

test('what erasing cannot do is refused as Node does', () => {
  const [unsupported, invalid] = ['ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX', 'ERR_INVALID_TYPESCRIPT_SYNTAX']
  check(
    `installTypeScript()
for (const name of ['enum', 'property', 'broken']) out(await failure(import('./' + name + '.ts')))
out(await failure(import('packed')))
`,
    [
      ['SyntaxError', unsupported],
      ['SyntaxError', unsupported],
      ['SyntaxError', invalid],
      ['Error', 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING'],
    ],
  )
})

const inWorker = `import { Worker } from 'node:worker_threads'
const run = (key) => new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: key })
  worker.once('message', resolve)
  worker.once('error', reject)
})
const exported = (name, what) => 'm' + JSON.stringify([new URL(name, import.meta.url).href, what])
const code = 'async (pair) => (await import("./add.ts")).add(pair)'
const head = { form: 'expression', file: import.meta.url, line: 0, column: 0, strict: true, name: '',
  self: undefined, usesImport: true, given: [], metaName: undefined }
const written = 'f' + JSON.stringify(head) + '\\n' + code
`

test('a worker loads what Corespun runs there, with or without the main thread', () => {
  const runs = `out(await run(exported('./add.ts', 'add')))
out(await run(written))
out((await run(exported('./enum.ts', 'before'))).slice(0, 15))
`
  const expected = [4, 4, 'FUNCTION_MODULE']
  check(`${inWorker}${runs}`, expected)
  check(`${inWorker}installTypeScript()\n${runs}`, expected)
})

test('a worker of a program that installed it loads TypeScript from JavaScript', () => {
  writeFileSync(join(folder, 'between.mjs'), "export { add } from './add.ts'\n")
  check(
    `${inWorker}installTypeScript()
out(await run(exported('./between.mjs', 'add')))
`,
    [4],
  )
})

test('erased text keeps its length, and refusals name the position', () => {
  const source = files['add.ts']
  const erased = stripTypes(source, '/x/add.ts')
  assert.equal(erased.length, source.length)
  assert.equal(erased.indexOf('pair.a'), source.indexOf('pair.a'))
  assert.throws(() => stripTypes(files['enum.ts'], '/x/enum.ts'), /\/x\/enum\.ts:2:8/)
  assert.throws(() => stripTypes('', '/x/node_modules/y/z.ts'), { code: /NODE_MODULES/ })
})

test('the kind of a module', () => {
  const kinds: readonly (readonly [name: string, code: string, kind: string])[] = [
    ['a.mts', '', 'module'],
    ['a.cts', 'export {}', 'commonjs'],
    ['a.ts', '', 'module'],
    ['untyped/a.ts', 'exports.x = 1', 'commonjs'],
    ['untyped/a.ts', 'return 1', 'commonjs'],
    ['untyped/a.ts', 'import "x"', 'module'],
    ['untyped/a.ts', 'export const x = 1', 'module'],
    ['untyped/a.ts', 'console.log(import.meta.url)', 'module'],
    ['untyped/a.ts', 'await 1', 'module'],
  ]
  for (const [name, code, kind] of kinds) {
    assert.equal(formatOf(join(folder, name), code), kind, `${name} ${code}`)
  }
  for (const name of ['a.ts', 'a.mts?x', 'file:///a.cts#y']) assert.ok(isTypeScript(name))
  for (const name of ['a.js', 'a.tsx', 'a.ts.js', 'ats']) assert.ok(!isTypeScript(name))
})
