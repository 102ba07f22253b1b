/**
 * Functions that travel, each beside what it must do there. refusals.test.ts has those that do not.
 *
 * The far side is a compiled copy in this thread; functions-threads.test.ts repeats the parts that depend on
 * threads, on the kind of the calling file and on the flags of the process.
 */
/* oxlint-disable no-eval, no-extra-bind, no-extraneous-class, no-useless-concat, no-underscore-dangle --
   the forms that nobody should write are what is tested here */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { EOL } from 'node:os'
import { dirname } from 'node:path'
import * as processModule from 'node:process'
import process, { cwd } from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as vm from 'node:vm'
import { callerFile } from './caller.ts'
import { Plain, accessor, far, line, refused, same } from './functions.test.support.ts'
import { functionNumber, setFunctionTable, type FunctionTable } from './functions.ts'
import '../tables.test.support.ts'

const require = createRequire(import.meta.url)
const __filename = fileURLToPath(import.meta.url)

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
  assert.equal((await far(async () => await import('node:os'))()).EOL, EOL)
  const named = far(() => import('node:os'))
  const [one, other] = [named(), named()]
  assert.ok(one instanceof Promise)
  assert.notEqual(one, other, 'each import() is a promise of its own')
  assert.equal(await one, await other)
  assert.equal(await named(), await import('node:os'))
  // @ts-expect-error -- there is no such file
  const absent = far(() => import('./not-there.mjs') as Promise<unknown>)
  for (let times = 0; times < 2; times += 1) await assert.rejects(absent(), { code: 'ERR_MODULE_NOT_FOUND' })
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

test('the file of a caller is found by its stack', () => {
  const here = (): string => callerFile(here)
  assert.equal(here(), import.meta.url)
  assert.equal(vm.runInThisContext('(f) => f()', { filename: 'caller.js' })(here), 'caller.js')
})
