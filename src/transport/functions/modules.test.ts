/**
 * Exports that travel by the name of their module, and code that runs as a script.
 *
 * A module is resolved where it was named.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FunctionError, type FunctionCodes } from './function-errors.ts'
import { far, line } from './functions.test.support.ts'
import { codeNumber, functionByNumber, moduleFunctionNumber } from './functions.ts'
import '../tables.test.support.ts'

const __filename = fileURLToPath(import.meta.url)

const moduleUrl =
  'data:text/javascript,' +
  encodeURIComponent(`
  export const add = (a, b) => a + b
  export default function twice(x) { return x * 2 }
  export const api = { base: 10, deep: { f() { return 'deep' } }, plus(x) { return this.base + x } }
  export const number = 5
  export class Made {}
`)

test('exports travel by the name of their module', async () => {
  const add = moduleFunctionNumber(moduleUrl, 'add')
  assert.equal(moduleFunctionNumber(moduleUrl, 'add'), add)
  assert.equal(moduleFunctionNumber(new URL(moduleUrl), 'add'), add)
  const first = functionByNumber(add)
  assert.ok(first instanceof Promise)
  assert.equal(((await first) as (a: number, b: number) => number)(1, 2), 3)
  assert.equal(functionByNumber(add), await first)
  const get = async (name: string): Promise<Function> =>
    functionByNumber(moduleFunctionNumber(moduleUrl, name))
  assert.equal((await get('default'))(4), 8)
  assert.equal((await get('api.plus'))(4), 14)
  assert.equal((await get('api.deep.f'))(), 'deep')
})

test('modules are resolved where they were named', async () => {
  const name = 'readFunctionText'
  const relative = moduleFunctionNumber('./captures.js', name, import.meta.url)
  assert.equal(await functionByNumber(relative), (await import('./captures.js')).readFunctionText)
  assert.equal(moduleFunctionNumber('./captures.js', name, __filename), relative)
  assert.equal(moduleFunctionNumber(new URL('./captures.js', import.meta.url), name), relative)
  assert.equal(moduleFunctionNumber(fileURLToPath(new URL('./captures.js', import.meta.url)), name), relative)
  for (const [module, exported] of [
    ['acorn', 'parse'],
    ['node:fs', 'stat'],
    ['node:fs', 'default.stat'],
  ]) {
    const number = moduleFunctionNumber(module, exported, import.meta.url)
    assert.equal(typeof (await functionByNumber(number)), 'function')
  }
})

test('a module that is missing, broken or without that function is refused by name', async () => {
  type Code = keyof FunctionCodes
  const reject = async (module: string, name: string, code: Code, ...words: string[]): Promise<void> => {
    const error = await (async () =>
      functionByNumber(moduleFunctionNumber(module, name, import.meta.url)))().then(
      () => assert.fail('it resolves'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof FunctionError, String(error))
    assert.equal(error.code, code)
    for (const word of words) assert.ok(error.message.includes(word), error.message)
  }
  await reject('./not-there.js', 'f', 'FUNCTION_MODULE', 'not-there.js', 'no such file', 'corespun/plugin')
  await reject('not-a-package', 'f', 'FUNCTION_MODULE', 'npm install not-a-package')
  await reject('@not/a-package/sub', 'f', 'FUNCTION_MODULE', 'npm install @not/a-package')
  const requiring =
    'data:text/javascript,import { createRequire } from "node:module";' +
    'createRequire("file:///x.js")("not-a-package")'
  await reject(requiring, 'f', 'FUNCTION_MODULE', 'npm install not-a-package')
  await reject('data:text/javascript,throw new Error("at load")', 'f', 'FUNCTION_MODULE', 'at load')
  await reject('data:text/javascript,export const = 1', 'f', 'FUNCTION_MODULE')
  await reject(moduleUrl, 'subtract', 'FUNCTION_EXPORT_MISSING', '"subtract"', 'add')
  await reject(moduleUrl, 'api.deep.g', 'FUNCTION_EXPORT_MISSING', 'api.deep.g')
  await reject(moduleUrl, 'api.base.length', 'FUNCTION_EXPORT_MISSING')
  for (const name of [
    'constructor',
    'toString',
    'hasOwnProperty',
    '__proto__',
    'api.constructor',
    'add.call',
  ]) {
    await reject(moduleUrl, name, 'FUNCTION_EXPORT_MISSING', `"${name}"`, 'add')
    await reject('node:path', name.replace('api', 'posix').replace('add', 'join'), 'FUNCTION_EXPORT_MISSING')
  }
  await reject(moduleUrl, 'number', 'FUNCTION_EXPORT_KIND', '5')
  assert.throws(() => moduleFunctionNumber('./x.js', 'f'), { code: 'FUNCTION_MODULE_NAME' })
  assert.throws(() => moduleFunctionNumber('bare', 'f'), { code: 'FUNCTION_MODULE_NAME' })
  assert.throws(() => functionByNumber(1e9), { code: 'FUNCTION_UNKNOWN' })
})

test('code runs as a script of the thread', () => {
  const run = (code: string, file = import.meta.url): unknown => {
    const made = functionByNumber(codeNumber(code, file)) as () => unknown
    return made()
  }
  assert.equal(run('var broadcastState = 40; function bump() { return broadcastState += 1 }; bump()'), 41)
  assert.equal(far(() => bump())(), 42)
  assert.equal(run('typeof require("./functions.js")'), 'object')
  assert.equal(codeNumber('1', 'a.js'), codeNumber('1', 'a.js'))
  assert.match(
    line(() => run('\n\nnull.x', '/some/file.js')),
    /\/some\/file\.js:3:6/,
  )
  assert.throws(() => codeNumber('var = 1', 'file.js'), { code: 'FUNCTION_CODE' })
})

declare function bump(): number
