/**
 * What functions of users return in a wrong shape: each is refused by a code and a sentence that names the
 * function, and nothing has changed. Where the language has an own error, as for iterators, it is that.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Exit,
  type Runnable,
  Deferred,
  Ref,
  Schedule,
  SynchronizedRef,
  forEach,
  fork,
  fromExit,
  repeat,
} from './index.ts'

const ref = new Ref('as it was')
const synchronized = new SynchronizedRef('as it was')
const runnable = (made: unknown): Runnable<unknown, unknown> =>
  ({ [Symbol.for('corespun.runnable')]: () => made }) as never
const deferredOf = (exit: unknown): Deferred<unknown> => {
  const deferred = new Deferred<unknown>()
  deferred.done(exit as never)
  return deferred
}
const cron = (made: unknown): Schedule => Schedule.cron({ nextRun: () => made as Date })
const iterable = (made: unknown): Iterable<unknown> =>
  ({ [Symbol.iterator]: () => ({ next: () => made }) }) as never

/** Calls with a function that returns `made`. */
const CALLS: Record<string, { call: (made: unknown) => unknown; bad: unknown[]; error: object }> = {
  'Ref.modify': {
    call: (made) => ref.modify(() => made as [unknown, string]),
    bad: [undefined, null, 5, 'ab', {}, [], [1], [1, 2, 3], new Set([1, 2]), Promise.resolve([1, 2])],
    error: { code: 'FIBER_ARGUMENT', message: /^modify\(\): what change\(\) returned must be two values/ },
  },
  'SynchronizedRef.modify': {
    call: (made) => synchronized.modify(() => made),
    bad: [undefined, null, 5, 'ab', {}, [], [1], [1, 2, 3], new Set([1, 2]), Promise.resolve([1])],
    error: { code: 'FIBER_ARGUMENT', message: /^modify\(\): what change\(\) returned must be two values/ },
  },
  'nextRun of a cron': {
    call: (made) => fork(repeat(() => 1, cron(made))).join(),
    bad: [5, '2026-12-01', {}, new Date(Number.NaN), Promise.resolve(new Date())],
    error: { code: 'FIBER_ARGUMENT', message: /^cron\(\): what nextRun\(\) returned must be a Date or null/ },
  },
  'a runnable': {
    call: (made) => fork(runnable(made)).join(),
    bad: [undefined, 5, {}, { kind: 'other' }, []],
    error: { code: 'FIBER_ARGUMENT', message: /must be an Exit/ },
  },
  'fromExit and done': {
    call: (made) => Promise.all([fork(fromExit(made as Exit<unknown>)).join(), deferredOf(made).await()]),
    bad: [undefined, 5, {}, { kind: 'other' }, []],
    error: { code: 'FIBER_ARGUMENT', message: /must be an Exit/ },
  },
  'an iterator of forEach': {
    call: (made) => fork(forEach(iterable(made), (item) => item)).join(),
    bad: [undefined, null, 5, 'ab'],
    error: { name: 'TypeError', message: /^Iterator result .* is not an object$/ },
  },
}

for (const [name, { call, bad, error }] of Object.entries(CALLS))
  test(`${name}: what is returned in a wrong shape is refused by name`, async () => {
    for (const made of bad) await assert.rejects(async () => call(made), error)
    assert.deepEqual([ref.get(), synchronized.get()], ['as it was', 'as it was'])
  })

test('a SynchronizedRef goes on behind a change that was refused', async () => {
  await assert.rejects(async () => synchronized.modify(() => 5), { code: 'FIBER_ARGUMENT' })
  assert.equal(await synchronized.modify((value) => [value.length, 'next']), 9)
  assert.equal(synchronized.get(), 'next')
})

test('null and undefined end a cron', () => {
  for (const made of [null, undefined]) assert.equal(cron(made).start().next(1, 0), undefined)
})
