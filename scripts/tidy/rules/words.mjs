/**
 * Words that may not come back: each has a plainer one that readers of technical English expect.
 *
 * Where a word is the field's own, EXCEPTIONS names the phrase and the reason.
 */

/** What to write instead, and the pattern of what not to write. */
const WORDS = [
  ['show, report, notify', /\b(tells?|told|telling)\b|Told\b/gi],
  ['return, pass, contain', /\b(gives?|gave|giving)\b/gi],
  ['is, means', /\b(stands?|stood)\b/gi],
  ['state, report, contain', /\b(says?|said|saying)\b/gi],
  ['receive, listen', /\b(hears?|heard)\b/gi],
  ['find, contain, recognize', /\b(knows?|knew)\b/gi],
  ['need, expect, request', /\b(wants?|wanted)\b/gi],
  ['return', /\b(comes?|came|goes|went|go) home\b/gi],
  ['closed, removed, disconnected', /\bgone\b/gi],
  ['closed, removed, disconnected', /_GONE\b/g],
  ['is not', /\b(is|are|be|was|were|has|have) none\b/gi],
  ['is not', /(?<!\b(?:there|it|that|which)\s)\b(?:is|are) no\b(?! longer)/gi],
  ['every Nth', /manieth/gi],
  ['a sentence', /see the (file|module)'s (text|head)/gi],
  ['listener', /\bears?\b/gi],
  ['receiver', /\bdesks?\b/gi],
  ['workers', /\bcrew\w*/gi],
  ['queue, reader', /\bpump\w*/gi],
  ['middleware', /\bcomfort\w*/gi],
  ['call site, position, location', /(?<!\b(?:in|decimal)\s)\bplaces?\b/gi],
  ['response, respond', /\banswer\w*/gi, /http/],
  ['lifetime, TTL, worker', /\b(life|lives)\b/gi],
  ['handle, object, value', /\bthings?\b/gi],
]

/** @type {{phrase: RegExp, path?: RegExp, reason: string}[]} */
const EXCEPTIONS = [
  { phrase: /half-life/gi, reason: 'a term of statistics' },
  {
    phrase: /"Gone"/g,
    path: /^crates\/http\/src\/machine\/response\.rs$/,
    reason: 'the reason phrase of 410',
  },
  {
    phrase: /`(gone|Place|WorkerTold|StatsTold|[A-Z_]+_GONE)`/g,
    path: /^CHANGELOG\.md$/,
    reason: 'names in 0.1.0',
  },
]

const FOLDERS = /^(src|crates|scripts|test|bench|docs|examples)\/.*\.(ts|js|mjs|html|rs|md)$/
const DOCUMENTS = /^(README|CONTRIBUTING|CHANGELOG)\.md$/
/** Records quote their time; the rule and its test are made of these words. */
const LEFT_OUT = /^bench\/records\/|^scripts\/tidy\/(rules\/words|words\.test)\.mjs$/

export function words(tree) {
  const searched = tree.sources.filter(
    ({ path }) => (FOLDERS.test(path) || DOCUMENTS.test(path)) && !LEFT_OUT.test(path),
  )
  return searched.flatMap(({ path, text }) => occurrences(path, text))
}

function occurrences(path, text) {
  const excepted = EXCEPTIONS.filter((one) => one.path?.test(path) ?? true)
    .flatMap(({ phrase }) => [...text.matchAll(phrase)])
    .map(({ index, 0: phrase }) => ({ from: index, to: index + phrase.length }))
  const found = WORDS.filter(([, , where]) => where?.test(path) ?? true).flatMap(([instead, pattern]) =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => !excepted.some(({ from, to }) => from <= index && index < to))
      .map(({ index, 0: word }) => ({ index, message: `"${word}": write ${instead}` })),
  )
  return found
    .sort((a, b) => a.index - b.index)
    .map(({ index, message }) => ({ path, line: text.slice(0, index).split('\n').length, message }))
}
