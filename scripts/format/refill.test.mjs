/**
 * Comments before and after refilling, at a width of 20 so that the cases can be read.
 *
 * What is short, code, or shown as it stands must come back untouched.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refill } from './refill.mjs'

function check(name, before, after) {
  test(name, () => assert.deepEqual(refill(before.join('\n'), 20).split('\n'), after))
}
const same = (name, lines) => check(name, lines, lines)

check(
  'a paragraph is filled',
  ['// one two three four five six', '// seven'],
  ['// one two three', '// four five six', '// seven'],
)
check(
  'its neighbours stay',
  ['//! a', '//!', '//! one two three four', '//!', '//! b'],
  ['//! a', '//!', '//! one two three', '//! four', '//!', '//! b'],
)
check(
  'a block keeps its indent',
  ['  /**', '   * one two three four', '   */'],
  ['  /**', '   * one two three', '   * four', '   */'],
)
check('a tag hangs', [' * @param a one two three'], [' * @param a one two', ' *   three'])
check(
  'a list hangs',
  ['/// - one two three four', '/// - b'],
  ['/// - one two three', '///   four', '/// - b'],
)
check(
  'one line becomes a block',
  ['/** One two three. @throws {E} four */'],
  ['/**', ' * One two three.', ' * @throws {E} four', ' */'],
)
check(
  'a long word stands alone',
  ['// see https://example.org/a/b now'],
  ['// see', '// https://example.org/a/b', '// now'],
)
same('code stays', ['const a = "one two three four"'])
same('short comments stay', ['// one', '// two', ' * three'])
same('tables and code in comments stay', ['// | one | two | three |', '//     let a = one two three'])
