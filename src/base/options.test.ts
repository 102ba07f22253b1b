/**
 * Objects with options: what is filled in, what is refused and how.
 * Only their own properties count, whatever `Object.prototype` has.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  argumentSentence,
  flag,
  integer,
  milliseconds,
  oneOf,
  optionsOf,
  ownOptions,
  refuser,
  text,
} from './options.ts'

const wrong = refuser((facts) => Object.assign(new Error(argumentSentence(facts)), { facts }))
const kinds = {
  workers: integer(1, 1024, 4),
  ordered: flag(true),
  eviction: oneOf<'hot' | 'none'>(['hot', 'none'], 'hot'),
}
const read = (given: unknown): object => optionsOf(given, kinds, wrong, 'make()')

test('what is absent has its default, and the record is complete and frozen', () => {
  const defaults = { workers: 4, ordered: true, eviction: 'hot' }
  assert.deepEqual(read(undefined), defaults)
  assert.deepEqual(read({ workers: undefined }), defaults)
  assert.deepEqual(read({ workers: 2, ordered: false }), { ...defaults, workers: 2, ordered: false })
  assert.ok(Object.isFrozen(read({})))
})

test('an unknown name is refused, with the nearest one that exists, or with all', () => {
  assert.throws(() => read({ worker: 2 }), {
    message: 'make(): unknown option "worker"; did you mean "workers"?',
  })
  assert.throws(() => read({ orderd: 2 }), {
    message: 'make(): unknown option "orderd"; did you mean "ordered"?',
  })
  assert.throws(() => read({ wrokers: 2 }), {
    message: 'make(): unknown option "wrokers"; did you mean "workers"?',
  })
  assert.throws(() => read({ x: 2 }), {
    message: 'make(): unknown option "x"; the options are workers, ordered, eviction',
    facts: {
      name: 'make(): x',
      expected: 'the options are workers, ordered, eviction',
      received: '2',
      unknown: 'x',
    },
  })
})

test('a wrong value is refused with what it must be and what was received', () => {
  for (const [given, message] of [
    [5, 'make(): options must be an object; received 5'],
    [null, 'make(): options must be an object; received null'],
    [[], 'make(): options must be an object; received an array of 0'],
    [{ workers: '5' }, 'make(): workers must be an integer from 1 to 1024; received "5"'],
    [{ workers: 0 }, 'make(): workers must be an integer from 1 to 1024; received 0'],
    [{ ordered: 1 }, 'make(): ordered must be true or false; received 1'],
    [{ eviction: 'cold' }, `make(): eviction must be 'hot' or 'none'; received "cold"`],
  ] as const)
    assert.throws(() => read(given), { message })
})

test('an object that was received is shown by its class', () => {
  for (const [given, text] of [
    [{}, 'a plain object'],
    [Object.create(null), 'an object without a class name'],
    [new (class {})(), 'an object without a class name'],
    [Promise.resolve(), 'a Promise'],
    [new Map(), 'a Map'],
    [new AbortController(), 'an AbortController'],
    [new Uint8Array(), 'a Uint8Array'],
  ] as const)
    assert.equal(wrong('x', 'y', given).message, `x must be y; received ${text}`)
})

test('a message has its own verb, and shows no value that is missing', () => {
  assert.equal(wrong('make()', '{ size }', undefined, { verb: 'needs' }).message, 'make() needs { size }')
  const taken = wrong('make()', 'no argument', 5, { verb: 'takes' }).message
  assert.equal(taken, 'make() takes no argument; received 5')
})

test('the name of an inner record is part of the name, and a number of milliseconds has its bounds', () => {
  const inner = (given: unknown): object =>
    optionsOf(given, { ms: milliseconds(10, 1), name: text('x') }, wrong, 'make()', 'limits')
  for (const [given, message] of [
    [5, 'make(): limits must be an object; received 5'],
    [{ m: 1 }, 'make(): unknown option "limits.m"; did you mean "ms"?'],
    [{ ms: -1 }, 'make(): limits.ms must be a number of milliseconds from 0 to 10; received -1'],
    [{ ms: NaN }, 'make(): limits.ms must be a number of milliseconds from 0 to 10; received NaN'],
    [{ name: '' }, 'make(): limits.name must be a string that is not empty; received ""'],
  ] as const)
    assert.throws(() => inner(given), { message })
})

test('what an object inherits is not an option', () => {
  assert.deepEqual(read(Object.create({ workers: 'x', other: 1 })), read({}))
  Object.assign(Object.prototype, { workers: 'x' })
  try {
    assert.deepEqual({ ...read({ ordered: false }) }, { ...read(undefined), ordered: false })
    assert.equal(
      ownOptions<{ workers?: number }>({}, new Set(['workers']), wrong, 'make()').workers,
      undefined,
    )
  } finally {
    delete (Object.prototype as { workers?: unknown }).workers
  }
})
