/**
 * Lines of results and failures against the JSON they should be.
 * The interesting rows are values that JSON drops or refuses, and thrown values that are not errors.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CliError } from '../errors.ts'
import { failureLine, isFailure, resultLine, unmarked, type RecordStyle } from './records.ts'

const bare: RecordStyle = { numbered: false, stacks: false, paths: false }

const results: readonly (readonly [value: unknown, line: string])[] = [
  [1, '1'],
  ['a\nb', '"a\\nb"'],
  ['!', '"!"'],
  [null, 'null'],
  [undefined, 'null'],
  [() => 1, 'null'],
  [Symbol('s'), 'null'],
  [NaN, 'null'],
  [{ a: undefined, b: [undefined] }, '{"b":[null]}'],
  [new Date(0), '"1970-01-01T00:00:00.000Z"'],
]
for (const [value, line] of results) {
  test(`result ${line}`, () => {
    assert.equal(resultLine(value, 7, bare), line)
    assert.equal(isFailure(line), false)
    assert.equal(resultLine(value, 7, { ...bare, numbered: true }), `{"item":7,"value":${line}}`)
  })
}

test('what JSON refuses is an error with the reason on one line', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const throwing = {
    toJSON() {
      throw new RangeError('no')
    },
  }
  for (const value of [1n, cycle, throwing]) {
    assert.throws(() => resultLine(value, 1, bare), { code: 'CLI_RESULT_NOT_JSON', message: /^[^\n]+$/ })
  }
})

function failure(thrown: unknown, style = bare): unknown {
  const line = failureLine(thrown, 7, 'a.js', style)
  assert(isFailure(line))
  return JSON.parse(unmarked(line))
}

test('a failure carries the item, the name, the code and the message', () => {
  assert.deepEqual(failure(new RangeError('far')), { item: 7, error: { name: 'RangeError', message: 'far' } })
  const error = Object.assign(new Error('deleted'), { code: 'ENOENT' })
  assert.deepEqual(failure(error), { item: 7, error: { name: 'Error', code: 'ENOENT', message: 'deleted' } })
  const ours = new CliError('CLI_ITEM_TIMEOUT', { timeoutMs: 5 })
  assert.deepEqual((failure(ours) as { error: { code: string } }).error.code, 'CLI_ITEM_TIMEOUT')
})

test('a failure names the path, and shows the stack, when asked to', () => {
  const record = failure(new Error('x'), { numbered: true, stacks: true, paths: true })
  assert.deepEqual(Object.keys(record as object), ['item', 'path', 'error'])
  assert.match((record as { error: { stack: string } }).error.stack, /Error: x\n {4}at /)
})

test('anything can be thrown', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const nothing = { toJSON: () => undefined }
  const hostile = Object.defineProperty(new Error('x'), 'message', {
    get() {
      throw new Error('again')
    },
  })
  const bare = Object.assign(Object.create(null) as object, nothing)
  const odd = [nothing, bare, hostile, Object.assign(new Error(), { name: Object.create(null) as string })]
  const thrown = ['text', 1, null, undefined, { a: 1 }, Symbol('s'), cycle, Object.create(null), ...odd]
  for (const one of thrown) {
    const { error } = failure(one) as { error: { message: string } }
    assert.equal(typeof error.message, 'string')
  }
})
