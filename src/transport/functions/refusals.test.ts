/**
 * Functions that are refused, with the names, the locations and the advice of the error.
 *
 * functions.test.ts has those that travel.
 */
/* oxlint-disable no-eval, no-extra-bind, no-extraneous-class, no-useless-concat, no-underscore-dangle --
   the forms that nobody should write are what is tested here */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { FunctionError } from './function-errors.ts'
import { Plain, far, refusal, refused } from './functions.test.support.ts'
import { codeNumber } from './functions.ts'
import '../tables.test.support.ts'

const require = createRequire(import.meta.url)

const fetch = 'a variable named like a global'

const outer = 1

let counter = 0

test('the advice names the function, in a call and in an arrow', () => {
  const parse = (): unknown => outer
  assert.match(refusal(parse).message, /module<.*\.parse\(\.\.\.\);.*exported\(import\.meta\.url, parse\)\./)
  assert.match(
    refusal(() => outer).message,
    /module<.*\.name\(\.\.\.\);.*exported\(import\.meta\.url, fn\)\./,
  )
})

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
    new (function (this: { f: Function }) {
      this.f = () => new.target
    } as unknown as new () => { f: Function })().f,
    'FUNCTION_OUTER_THIS',
    'new.target',
  )
})
