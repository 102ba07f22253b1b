/**
 * Lines cut from pieces of any size, against `split` on the whole text.
 * Where a piece ends must never show in the lines.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineCutter, type Item } from './lines.ts'

const LINE_CHARS_MAX = 12

/** What the whole text should become: the slow, obvious way. */
function oracle(text: string, blankLines: boolean): string[] {
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => blankLines || line.trim() !== '' || line.length > LINE_CHARS_MAX)
    .map((line) => (line.length > LINE_CHARS_MAX ? 'CLI_LINE_TOO_LONG' : line))
}

function cut(pieces: readonly string[], blankLines: boolean): string[] {
  const cutter = new LineCutter({ lineCharsMax: LINE_CHARS_MAX, blankLines })
  const items: Item[] = pieces.flatMap((piece) => cutter.push(piece))
  return [...items, ...cutter.end()].map((item) => (typeof item === 'string' ? item : item.code))
}

function check(pieces: readonly string[], blankLines = true): void {
  assert.deepEqual(cut(pieces, blankLines), oracle(pieces.join(''), blankLines))
}

test('LF, CRLF, and a last line without an end', () => check(['a\nb\r\nc']))
test('a line in several pieces', () => check(['a', 'b', '\n', 'c\r', '\nd']))
test('a CR is part of a line unless LF follows', () => check(['a\rb\n', 'c\r', 'd\n']))
test('blank lines are items, or are not', () => {
  check(['\n\na\n \n'])
  check(['\n\na\n \n'], false)
})
test('a byte order mark only at the start', () => check(['\uFEFFa\n\uFEFFb\n']))
test('nothing at all', () => {
  check([])
  check([''])
})
test('a line that is too long is one error, and the next line is whole again', () => {
  check(['x'.repeat(40), 'x'.repeat(40), 'x\ny\n'])
  check([`${'x'.repeat(12)}\r\n${'x'.repeat(13)}\r\ny`])
})
test('pieces never matter', () => {
  const letters = fc.constantFrom('a', 'b', '\n', '\r', '\r\n', ' ', '\uFEFF', 'é', '😀', 'xxxxxxxx')
  const pieces = fc.array(
    fc.array(letters, { maxLength: 6 }).map((all) => all.join('')),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(pieces, fc.boolean(), (all, blankLines) => check(all, blankLines)),
    { numRuns: 2000 },
  )
})
