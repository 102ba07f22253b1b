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
  'the client is gone, HTTP_CLIENT_GONE': ['gone', '_GONE'],
  'an error that is none': ['is none'],
  'what is no function; there is no function, and it is no longer one': ['is no'],
  'every so manieth': ['manieth'],
  "see the file's text": ["see the file's text"],
  'the ears, an ear, an earlier year': ['ears', 'ear'],
  'a desk, a desktop': ['desk'],
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

test('a room may have as many as are checked in, and fewer; one finding counts those of a room', () => {
  const check = (count, path, expected) => {
    const tree = treeOf({ [path]: Array(count).fill('gone').join(' ') })
    const messages = words(tree, { 'src/a': 2, docs: 1 }).map(({ message }) => message.split(' words')[0])
    assert.deepEqual(messages, expected)
  }
  check(2, 'src/a/deep/x.ts', [])
  check(1, 'src/a/x.rs', [])
  check(3, 'src/a/x.ts', ['src/a has 3'])
  check(1, 'docs/guide/x.md', [])
  check(2, 'docs/guide/x.md', ['docs has 2'])
})

test('records and files of other kinds are not searched', () => {
  for (const path of ['bench/records/x.md', 'src/a/x.json', 'scripts/tidy/rules/words.mjs'])
    assert.deepEqual(found('gone', path), [])
})

test('pages of examples and the changelog are searched, but for names of 0.1.0', () => {
  for (const path of ['examples/page/x.js', 'examples/page/x.html', 'CHANGELOG.md'])
    assert.deepEqual(found('gone', path), ['gone'])
  assert.deepEqual(found('`gone` is `ended`', 'CHANGELOG.md'), [])
})
