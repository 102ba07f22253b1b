/**
 * Names that tools put into functions are blamed on the tool, with its remedy.
 *
 * Names that authors write are not.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FunctionError } from './function-errors.ts'
import { rewritingToolOf } from './rewriting-tools.ts'

const location = { name: 'score', file: '/app/score.ts', line: 3, column: 5 }
const textOf = (...names: string[]): string =>
  new FunctionError('FUNCTION_CAPTURES', {
    ...location,
    captured: names.map((name) => ({ name, line: 4, column: 2 })),
  }).message

const BLAMED = [
  ['cov_1q1nhmrg7a', /istanbul .*c8/],
  ['__vite_ssr_dynamic_import__', /vitest .*zone\.module<.*\.name\(\.\.\.\).*server\.deps\.external/],
  ['__vite_ssr_import_0__', /vitest/],
  ['__vi_import_0__', /vitest/],
  ['__name', /esbuild and tsx .*keepNames/],
  ['__awaiter', /TypeScript .*"target" to "es2022"/],
  ['__classPrivateFieldGet', /TypeScript .*"target"/],
  ['__addDisposableResource', /TypeScript .*"esnext"/],
  ['tslib_1', /TypeScript .*"target"/],
  ['_async_to_generator', /Babel and swc .*jsc\.target/],
  ['_asyncToGenerator', /Babel and swc/],
  ['_objectSpread2', /Babel and swc/],
  ['_interopRequireDefault', /Babel and swc/],
  ['__webpack_require__', /webpack .*webpackIgnore/],
  ['__turbopack_context__', /Turbopack/],
  ['__toESM', /esbuild and Rolldown .*node20/],
  ['stryMutAct_9fa48', /Stryker/],
] as const

for (const [name, expected] of BLAMED) {
  test(`${name} is blamed on the tool that adds it`, () => {
    const text = textOf(name)
    assert.match(text, expected)
    assert.match(text, new RegExp(`function score \\(/app/score\\.ts:3:5\\).*${name} \\(line 4, column 2\\)`))
    assert.doesNotMatch(text, /pass the value/i)
  })
}

test('names that authors write are not blamed on a tool', () => {
  const written = ['coverage', 'cov_', 'cov_Total', '__dirname', '__filename', '_name', '__names', 'awaiter']
  const alike = ['init_db', '_async', '_defineProperties', 'require', 'toESM', 'webpack', 'tslib_x', '__x']
  for (const name of [...written, ...alike]) assert.equal(rewritingToolOf(name), undefined, name)
})

test('beside a variable of the author both remedies are in the message, each tool once', () => {
  const text = textOf('rate', '__awaiter', '__awaiter')
  assert.match(text, /Pass the value as an argument, or .*\. __awaiter is in no source file: TypeScript/)
  assert.equal(text.split('is in no source file').length, 2)
})
