/**
 * Functions that travel and functions that are refused, each beside what it must do.
 *
 * The far side is a compiled copy in this thread; functions-threads.test.ts repeats the parts that depend on
 * threads, on the kind of the calling file and on the flags of the process.
 */
/* oxlint-disable no-eval, no-extra-bind, no-extraneous-class, no-useless-concat, no-underscore-dangle --
   the forms that nobody should write are what is tested here */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import * as processModule from 'node:process'
import process, { cwd } from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as vm from 'node:vm'
import { callerFile } from './caller.ts'
import { FunctionError, type FunctionCodes } from './function-errors.ts'
import {
  codeNumber,
  functionByNumber,
  functionNumber,
  moduleFunctionNumber,
  setFunctionTable,
  type FunctionTable,
} from './functions.ts'

const require = createRequire(import.meta.url)
const __filename = fileURLToPath(import.meta.url)
const fetch = 'a variable named like a global'
const outer = 1
let counter = 0

/** The function as another thread would have it. */
function far<Fn extends Function>(fn: Fn): Fn {
  const made = functionByNumber(functionNumber(fn))
  assert.equal(typeof made, 'function')
  assert.notEqual(made, fn)
  return made as Fn
}

/** Calls with their expected results, in this thread and in another; the two are compared too. */
function same<Args extends unknown[]>(fn: (...args: Args) => unknown, ...args: Args): void {
  assert.deepEqual(far(fn)(...args), fn(...args))
}

class Plain extends Object {
  static twice(x: number): number {
    return x * 2
  }
  m(x: number): number {
    return x + 1
  }
  get g(): number {
    return 9
  }
  set g(v: number) {
    ;(this as unknown as { v: number }).v = v
  }
  async am(x: number): Promise<number> {
    return x + 2
  }
  *gm(x: number): Generator<number> {
    yield x
  }
  [Symbol.iterator](): number {
    return 3
  }
  ['computed ' + String(outer)](): number {
    return 4
  }
  'a name'(): number {
    return 5
  }
  tied(): string {
    return super.toString()
  }
  #secret = 7
  shows(): number {
    return this.#secret
  }
  asks(other: object): boolean {
    return #secret in other
  }
  #hidden(x: number): number {
    return x + 6
  }
  static hidden(one: Plain): Function {
    return one.#hidden
  }
  field = (): unknown => this.field
}

const accessor = (name: string, kind: 'get' | 'set'): Function =>
  Object.getOwnPropertyDescriptor(Plain.prototype, name)?.[kind] as Function

test('plain functions, arrows, methods and accessors travel', () => {
  same(() => 1)
  same((a, b) => a + b, 1, 2)
  same(function (a) {
    return a
  }, 'x')
  same(function named(n: number): number {
    return n === 0 ? 1 : n * named(n - 1)
  }, 5)
  same((a: number, b = a, ...rest: number[]) => [a, b, rest], 1, 2, 3)
  same(({ a, b: { c = 5 } = {} }: { a: number; b?: { c?: number } }) => a + c, { a: 1 })
  same(() => [1, 2, 3].map((each) => Math.max(each, 2)))
  same(() => {
    class Local {
      x = 1
      m() {
        return this.x
      }
    }
    return new Local().m()
  })
  same(() =>
    ({
      m() {
        return super.toString()
      },
    }).m(),
  )
  same(Plain.twice, 4)
  assert.equal(far(Plain.prototype.m)(1), 2)
  assert.equal(far(Plain.prototype[Symbol.iterator])(), 3)
  assert.equal(far((Plain.prototype as unknown as Record<string, () => number>)['computed 1'])(), 4)
  assert.equal(far(Plain.prototype['a name'])(), 5)
  assert.equal(far(Plain.hidden(new Plain()))(1), 7)
  assert.equal(far(accessor('g', 'get')).call({}), 9)
  const target = { v: 0 }
  far(accessor('g', 'set')).call(target, 8)
  assert.equal(target.v, 8)
  same(new Function('a', 'b', 'return a * b') as (a: number, b: number) => number, 6, 7)
  same(eval('(x) => x + 1') as (x: number) => number, 1)
  same(vm.runInThisContext('(x) => x + 2') as (x: number) => number, 1)
})

test('async functions and generators travel', async () => {
  assert.equal(await far(async (a: number) => a + 1)(1), 2)
  assert.equal(await far(Plain.prototype.am)(1), 3)
  assert.deepEqual(
    [
      ...far(function* (n: number) {
        for (let i = 0; i < n; i++) yield i
      })(3),
    ],
    [0, 1, 2],
  )
  assert.deepEqual([...far(Plain.prototype.gm)(4)], [4])
  const seen: number[] = []
  for await (const each of far(async function* () {
    yield 1
    yield 2
  })())
    seen.push(each)
  assert.deepEqual(seen, [1, 2])
})

test('globals are those of the thread that runs it', () => {
  same(() => typeof Buffer.from + typeof setTimeout + typeof globalThis + typeof structuredClone)
  same(() => typeof (globalThis as { missing?: unknown }).missing)
  assert.throws(
    far(() => notDeclaredAnywhere()),
    ReferenceError,
  )
})
declare function notDeclaredAnywhere(): void

test('a variable that holds what the global of its name holds is that global', () => {
  same(() => process.pid)
  refused(() => cwd(), 'FUNCTION_CAPTURES', 'cwd')
  refused(() => processModule, 'FUNCTION_CAPTURES', 'processModule')
})

test('a function that calls itself by its variable calls itself', () => {
  const fib = (n: number): number => (n < 2 ? n : fib(n - 1) + fib(n - 2))
  same(fib, 12)
  const made = [1, 2].map(() => {
    const again = (n: number): number => (n === 0 ? 0 : again(n - 1))
    return again
  })
  for (const each of made) same(each, 3)
})

test('its file, its modules and its meta are those of where it was written', async () => {
  same(() => require('node:os').EOL)
  same(() => require.resolve('./functions.js'))
  same(() => [import.meta.url, __filename])
  assert.deepEqual(far(() => [__dirname])(), [dirname(__filename)])
  assert.equal(far(() => import.meta.filename)(), __filename)
  assert.equal(far(() => import.meta.dirname)(), dirname(__filename))
  same(() => ['./functions.js', 'node:fs', 'fs'].map((name) => import.meta.resolve(name)))
  assert.match(far(() => import.meta.resolve('acorn'))(), /^file:.*\/acorn\//)
  const { readFunctionText } = await far(async () => await import('./captures.js'))()
  assert.equal(readFunctionText, (await import('./captures.js')).readFunctionText)
  assert.equal((await far(async () => await import('node:os'))()).EOL, '\n')
})

test('names, stack traces and strictness are kept', () => {
  function title(): void {
    throw new Error('here')
  }
  const own = line(title)
  assert.equal(line(far(title)), own)
  assert.match(own, /functions\.test\.js:\d+:\d+/)
  assert.equal(far(title).name, 'title')
  assert.equal(far(Plain.prototype[Symbol.iterator]).name, '[Symbol.iterator]')
  assert.equal(far(accessor('g', 'get')).name, 'get g')
  const arrow = (): void => {
    JSON.parse('{')
  }
  assert.equal(line(far(arrow)), line(arrow))
  const { method } = {
    method() {
      JSON.parse('{')
    },
  }
  assert.equal(line(far(method)), line(method))
  const { computed } = {
    ['comp' + 'uted']() {
      JSON.parse('{')
    },
  } as { computed: () => void }
  assert.equal(line(far(computed)), line(computed))
  same(function (this: unknown) {
    return this
  })
  assert.equal(far(vm.runInThisContext('(function () { return this })') as () => unknown)(), globalThis)
})

/** The first location in the stack of what `fn` throws. */
function line(fn: () => void): string {
  try {
    fn()
  } catch (error) {
    const locations = (error as Error).stack?.match(/[^(\s]+:\d+:\d+/g) ?? []
    return locations[0] as string
  }
  assert.fail('it does not throw')
}

function refusal(fn: Function): FunctionError {
  try {
    functionNumber(fn)
  } catch (error) {
    assert.ok(error instanceof FunctionError, String(error))
    return error
  }
  assert.fail(`accepted: ${String(fn)}`)
}

/** Check the code, and that the sentence names every word. */
function refused(fn: Function, code: keyof FunctionCodes, ...words: string[]): void {
  const error = refusal(fn)
  assert.equal(error.code, code, error.message)
  for (const word of words) assert.ok(error.message.includes(word), `${error.message} does not name ${word}`)
}

test('captured variables are refused with names and locations', () => {
  const inner = 2
  refused(() => outer, 'FUNCTION_CAPTURES', 'outer')
  refused(() => inner, 'FUNCTION_CAPTURES', 'inner')
  refused(() => outer + inner + outer, 'FUNCTION_CAPTURES', 'outer', 'inner')
  refused(() => ++counter, 'FUNCTION_CAPTURES', 'counter')
  refused(() => fetch, 'FUNCTION_CAPTURES', 'fetch')
  refused(
    () => {
      const f = (): unknown => () => outer
      return f
    },
    'FUNCTION_CAPTURES',
    'outer',
  )
  refused(() => new Plain(), 'FUNCTION_CAPTURES', 'Plain')
  refused((a = outer) => a, 'FUNCTION_CAPTURES', 'outer')
  refused(() => far, 'FUNCTION_CAPTURES', 'far')
  refused(
    function () {
      return typeof outer
    },
    'FUNCTION_CAPTURES',
    'outer',
  )
  refused(
    {
      m() {
        return inner
      },
    }.m,
    'FUNCTION_CAPTURES',
    'inner',
  )
  refused(() => assert.ok(1), 'FUNCTION_CAPTURES', 'assert', 'await import("node:assert/strict")')
  refused(() => codeNumber, 'FUNCTION_CAPTURES', 'imported from "./functions.js"')
  for (const each of [1]) refused(() => each, 'FUNCTION_CAPTURES', 'each')
  try {
    throw 1
  } catch (caught) {
    refused(() => caught, 'FUNCTION_CAPTURES', 'caught')
  }
  refused(
    (
      (require: () => unknown) => () =>
        require()
    )(() => 0),
    'FUNCTION_CAPTURES',
    'require',
  )
  refused(
    (
      (__dirname: string) => () =>
        __dirname
    )('elsewhere'),
    'FUNCTION_CAPTURES',
    '__dirname',
  )
  refused(
    (
      () => () =>
        early
    )(),
    'FUNCTION_CAPTURES',
    'early',
  )
})
const early = (): unknown => early

test('the facts of a capture are data', () => {
  const error = refusal(function score(x: number) {
    return x * outer
  }) as FunctionError<'FUNCTION_CAPTURES'>
  const { name, file, line: at, captured } = error.facts
  assert.deepEqual([name, file], ['score', import.meta.url])
  assert.deepEqual(captured, [{ name: 'outer', line: at + 1, column: 20 }])
})

test('what has no text of its own, or half of one, is refused by name', () => {
  refused(Math.max, 'FUNCTION_NATIVE', 'max')
  refused(Array.prototype.map, 'FUNCTION_NATIVE', 'map')
  refused(new Proxy(() => 1, {}), 'FUNCTION_NATIVE')
  refused(require('node:fs').readFileSync.bind(null) as Function, 'FUNCTION_BOUND', 'readFileSync')
  refused((() => 1).bind(null), 'FUNCTION_BOUND')
  refused(Plain, 'FUNCTION_CLASS', 'Plain')
  refused(class {}, 'FUNCTION_CLASS')
  refused(Date, 'FUNCTION_NATIVE', 'Date')
  refused(Plain.prototype.tied, 'FUNCTION_SUPER', 'tied')
  refused(Plain.prototype.shows, 'FUNCTION_PRIVATE', '#secret')
  refused(Plain.prototype.asks, 'FUNCTION_PRIVATE', '#secret')
  refused(new Plain().field, 'FUNCTION_OUTER_THIS', 'this')
  refused(
    function (this: unknown) {
      return () => this
    }.call(1),
    'FUNCTION_OUTER_THIS',
    'this',
  )
  refused(
    (function () {
      return () => arguments
    })(),
    'FUNCTION_OUTER_THIS',
    'arguments',
  )
  refused(
    new (
      function (this: { f: Function }) {
        this.f = () => new.target
      } as unknown as new () => { f: Function }
    )().f,
    'FUNCTION_OUTER_THIS',
    'new.target',
  )
})

test('helpers that compilers put beside a function are given to it', () => {
  const made = vm.runInThisContext(`(() => {
    const __name = (target, value) => Object.defineProperty(target, 'name', { value })
    return () => { const f = __name(() => 1, 'kept'); return [f.name, f()] }
  })()`) as () => unknown
  assert.deepEqual(far(made)(), ['kept', 1])
})

test('one source has one number, however many objects it makes', () => {
  const make = (): (() => number) => () => 1
  const numbers = new Set(Array.from({ length: 100 }, () => functionNumber(make())))
  assert.equal(numbers.size, 1)
  const here = (): number => 1
  const there = (): number => 1
  assert.equal(functionNumber(here), functionNumber(here))
  const dependent = (): (() => string) => () => import.meta.url
  assert.equal(functionNumber(dependent()), functionNumber(dependent()))
  assert.equal(far(here)(), far(there)())
})

test('the same text at another location is another function where the location matters', () => {
  const right = (): unknown => Math.max(1, 2)
  const make = (Math: { max(a: number, b: number): string }) => (): unknown => Math.max(1, 2)
  const wrong = make({ max: () => 'mine' })
  assert.equal(String(right).replace(/\s/g, ''), String(wrong).replace(/\s/g, ''))
  same(right)
  refused(wrong, 'FUNCTION_CAPTURES', 'Math')
  same(right)
})

test('with locations from the engine, the text is read once per location', () => {
  const keys = ['']
  const spot = { of: 7 }
  const numbers = new Map<number, number>()
  let interned = 0
  const intern = (key: string): number => {
    interned++
    return keys.includes(key) ? keys.indexOf(key) : keys.push(key) - 1
  }
  const table: FunctionTable = { intern, interned: (number) => keys[number] }
  setFunctionTable({
    ...table,
    known: () => (spot.of < 0 ? -1 : (numbers.get(spot.of) ?? 0)),
    remember: (_fn, number) => void numbers.set(spot.of, number),
  })
  const make = (): (() => number) => () => Math.abs(1)
  assert.equal(functionNumber(make()), 1)
  for (let i = 0; i < 20; i++) assert.equal(functionNumber(make()), 1)
  assert.equal(interned, 1)
  spot.of = 8
  assert.equal(functionNumber(make()), 1)
  assert.equal(interned, 2)
  spot.of = -1
  for (let i = 0; i < 3; i++) assert.equal(functionNumber(make()), 1)
  setFunctionTable({ ...table, intern: () => 0 })
  refused(() => 5, 'FUNCTION_TABLE_FULL', 'is full')
  setFunctionTable(table)
})

test('a variable of one closure decides for that closure alone', () => {
  const make = (again: ((n: number) => number) | undefined): ((n: number) => number) => {
    let rec = (n: number): number => (n === 0 ? 0 : rec(n - 1))
    const made = rec
    if (again !== undefined) rec = again
    return made
  }
  same(make(undefined), 3)
  refused(
    make(() => 1),
    'FUNCTION_CAPTURES',
    'rec',
  )
  same(make(undefined), 3)
})

test('variables of classic scripts are variables too', () => {
  vm.runInThisContext('let ofScript = 1; const process2 = process')
  refused(vm.runInThisContext('() => ofScript') as Function, 'FUNCTION_CAPTURES', 'ofScript')
  refused(vm.runInThisContext('() => process2') as Function, 'FUNCTION_CAPTURES', 'process2')
  same(vm.runInThisContext('() => typeof declaredNowhere') as () => unknown)
})

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
  await reject('./not-there.js', 'f', 'FUNCTION_MODULE', 'not-there.js', 'no such file')
  await reject('not-a-package', 'f', 'FUNCTION_MODULE', 'not-a-package')
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

test('the file of a caller is found by its stack', () => {
  const here = (): string => callerFile(here)
  assert.equal(here(), import.meta.url)
  assert.equal(vm.runInThisContext('(f) => f()', { filename: 'caller.js' })(here), 'caller.js')
})
