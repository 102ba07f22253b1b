/**
 * The rule `words`: each pattern on a planted sentence.
 *
 * tidy.test.mjs has its line; this file is left out of the rule's own search.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { words } from './rules/words.mjs'
import { treeOf } from './tree.mjs'

/** The words found in a text of one file. */
function found(text, path = 'src/planted/x.ts') {
  return words(treeOf({ [path]: text })).map(({ message }) => /"(.*?)"/.exec(message)[1])
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

test('pages of examples and the changelog are searched, but for names of 0.1.0', () => {
  for (const path of ['examples/page/x.js', 'examples/page/x.html', 'CHANGELOG.md'])
    assert.deepEqual(found('gone', path), ['gone'])
  assert.deepEqual(found('`gone` is `ended`', 'CHANGELOG.md'), [])
})
