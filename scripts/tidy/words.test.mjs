/**
 * The rule `words`: each pattern on a planted sentence, and the counts that rooms may have today.
 *
 * tidy.test.mjs has the case of a room without a count; this file is left out of the rule's own search.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { words } from './rules/words.mjs'
import { treeOf } from './tree.mjs'

/** The words found in a text of one file, without any that its room may have. */
function found(text, path = 'src/planted/x.ts', most = {}) {
  return words(treeOf({ [path]: text }), most).map(({ message }) => /"(.*?)"/.exec(message)[1])
}

const PLANTED = {
  'who is told of it, by tellName or onTold': ['told', 'Told'],
  'gives the number that was Given and gave it': ['gives', 'gave'],
  'it Stands where it stood': ['Stands', 'stood'],
  'as it says, saying so': ['says', 'saying'],
  'a caller hears what was heard': ['hears', 'heard'],
  'knows what it knew, a known value': ['knows', 'knew'],
  'wants what is wanted': ['wants', 'wanted'],
  'comes home, went home': ['comes home', 'went home'],
  'the client is gone': ['gone'],
  'an error that is none': ['is none'],
  'what is no function; there is no function, and it is no longer one': ['is no'],
  'every so manieth': ['manieth'],
  "see the file's text": ["see the file's text"],
  'the ears, an ear, an earlier year': ['ears', 'ear'],
  'crews and crewOf': ['crews', 'crewOf'],
  pumping: ['pumping'],
  comforts: ['comforts'],
  'a place, sorted in place, two decimal places': ['place'],
  'in its life, which lives there': ['life', 'lives'],
  'a half-life': [],
  'the thing, something, nothing': ['thing'],
  'an answer': [],
}

for (const [text, expected] of Object.entries(PLANTED))
  test(text, () => assert.deepEqual(found(text), expected))

test('an answer is a response where HTTP is', () => {
  assert.deepEqual(found('to answer, answered', 'src/http/x.ts'), ['answer', 'answered'])
  assert.deepEqual(found('to answer', 'docs/design/http-core.md'), ['answer'])
})

test('a finding names the line', () => {
  const [first, second] = words(treeOf({ 'src/a/x.ts': 'a\ngone\n\nthing gone' }), {})
  assert.deepEqual([first.path, first.line, second.line], ['src/a/x.ts', 2, 4])
})

test('a room may have as many as are checked in, and fewer', () => {
  const most = { 'src/a': 2, docs: 1 }
  assert.deepEqual(found('gone gone', 'src/a/deep/x.ts', most), [])
  assert.deepEqual(found('gone', 'src/a/x.rs', most), [])
  assert.deepEqual(found('gone gone gone', 'src/a/x.ts', most), ['gone', 'gone', 'gone'])
  assert.deepEqual(found('gone', 'docs/guide/x.md', most), [])
  assert.deepEqual(found('gone gone', 'docs/guide/x.md', most), ['gone', 'gone'])
})

test('records, the changelog and files of other kinds are not searched', () => {
  for (const path of ['bench/records/x.md', 'CHANGELOG.md', 'src/a/x.json', 'scripts/tidy/rules/words.mjs'])
    assert.deepEqual(found('gone', path), [])
})
