/**
 * Effect's own data types through the codec: equal on the other side, in both modes of it.
 *
 * Each is a test of its own, so that a new version of Effect shows which type has changed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Cause from 'effect/Cause'
import * as Chunk from 'effect/Chunk'
import * as DateTime from 'effect/DateTime'
import * as Duration from 'effect/Duration'
import * as Equal from 'effect/Equal'
import * as Exit from 'effect/Exit'
import * as Option from 'effect/Option'
import * as Redacted from 'effect/Redacted'
import * as Result from 'effect/Result'
import { decode, encode } from '../transport/index.ts'
import './index.ts'

const VALUES = [
  Option.some({ a: [1] }),
  Option.none(),
  Option.some(Option.none()),
  Result.succeed('yes'),
  Result.fail(Option.some(1)),
  Exit.succeed(3),
  Exit.fail('no'),
  Exit.die('bug'),
  Exit.interrupt(4),
  Cause.combine(Cause.fail('one'), Cause.die('two')),
  Cause.interrupt(),
  Cause.empty,
  Chunk.make(1, 2, 3),
  Chunk.empty(),
  Duration.millis(1.5),
  Duration.nanos(12n),
  Duration.infinity,
  Duration.negativeInfinity,
  DateTime.makeUnsafe(1_700_000_000_000),
]

for (const value of VALUES)
  test(`${String(value)} travels`, () => {
    for (const mode of ['process', 'portable'] as const) {
      const copy = mode === 'process' ? decode(encode(value, { mode }), { mode }) : decode(encode(value))
      assert.ok(Equal.equals(copy, value), `${mode}: ${String(copy)}`)
      assert.equal(Object.getPrototypeOf(copy), Object.getPrototypeOf(value))
    }
  })

test('what is redacted is refused', () => {
  assert.throws(() => encode(Redacted.make('secret')), { code: /^TRANSPORT_/ })
})
