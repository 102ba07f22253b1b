/**
 * Exits: constructors, guards, and what comes out of one; and that they and their errors travel.
 *
 * Every kind is asked by every guard.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode, decode } from '../../transport/index.ts'
import { Exit, FiberError, InterruptedError, exitValue } from '../index.ts'
import { flatExits, withOthers } from '../internal.ts'

const error = new RangeError('e')
const exits = [
  { exit: Exit.success(1), kind: 'success' },
  { exit: Exit.failure(error), kind: 'failure', throws: error },
  { exit: Exit.failure('text'), kind: 'failure', throws: 'text' },
  { exit: Exit.defect(error), kind: 'defect', throws: error },
  { exit: Exit.interruption('why'), kind: 'interruption' },
]

for (const { exit, kind, throws } of exits) {
  test(`an exit with a ${kind} answers to exactly one guard`, () => {
    assert.equal(exit.kind, kind)
    const guards = [Exit.isSuccess, Exit.isFailure, Exit.isDefect, Exit.isInterruption]
    const results = guards.map((guard) => guard(exit as Exit<unknown, unknown>))
    const kinds = ['success', 'failure', 'defect', 'interruption']
    assert.deepEqual(
      results,
      kinds.map((one) => one === kind),
    )
  })
  if (throws !== undefined)
    test(`exitValue throws the ${kind} itself: ${String(throws)}`, () => {
      try {
        exitValue<unknown, unknown>(exit)
        assert.fail('did not throw')
      } catch (thrown) {
        assert.equal(thrown, throws)
      }
    })
}

test('exitValue returns the value', () => assert.equal(exitValue(Exit.success(7)), 7))

test('exitValue throws an InterruptedError with the reason', () => {
  assert.throws(
    () => exitValue(Exit.interruption(error)),
    (thrown) =>
      thrown instanceof InterruptedError &&
      thrown instanceof FiberError &&
      thrown.code === 'FIBER_INTERRUPTED' &&
      thrown.reason === error &&
      thrown.cause === error,
  )
})

test('others are kept in order and come out flat', () => {
  const inner = withOthers(Exit.defect('b'), [Exit.failure('c')])
  const all = withOthers(Exit.failure('a'), [inner, Exit.interruption('d')])
  assert.deepEqual(flatExits(all), [
    Exit.failure('a'),
    Exit.defect('b'),
    Exit.failure('c'),
    Exit.interruption('d'),
  ])
  const alone = Exit.failure('x')
  assert.equal(withOthers(alone, []), alone)
})

test('an exit travels as what it is', () => {
  const exit = Exit.failure('a', [Exit.defect(new TypeError('b'))])
  assert.deepEqual(decode(encode(exit)), exit)
})

test('the errors of fibers travel', () => {
  const loaded = decode(encode(new InterruptedError(error))) as InterruptedError
  assert.ok(loaded instanceof InterruptedError)
  assert.deepEqual([loaded.code, loaded.facts], ['FIBER_INTERRUPTED', { reason: 'e' }])
  assert.ok(loaded.reason instanceof RangeError)
})
