/**
 * Reasons on one line: whole while they are as short as any sentence of an error here, else their start and
 * their end.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneLine } from './reasons.ts'

test('a line keeps its start, which is the subject, and its end, which is the advice', () => {
  const cases: readonly [string, string][] = [
    ['a\n  b\tc ', 'a b c'],
    ['x'.repeat(1000), 'x'.repeat(1000)],
    [
      'a\u001B[31mb\u009B1mc\u202Ed\0 \u{1F468}\u200D\u{1F469}',
      'a\uFFFD[31mb\uFFFD1mc\uFFFDd\uFFFD \u{1F468}\u200D\u{1F469}',
    ],
    [
      `app.ts: ${'x'.repeat(2000)} Call execute().`,
      `app.ts: ${'x'.repeat(489)} ... ${'x'.repeat(482)} Call execute().`,
    ],
  ]
  for (const [text, line] of cases) {
    assert.equal(oneLine(text), line)
    assert.ok(oneLine(text).length <= 1000)
  }
})
