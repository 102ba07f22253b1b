/**
 * Words that may not come back: each has a plainer one that readers of technical English expect.
 *
 * A room is a folder of src or crates, or a top-level folder or file. words.json has the count of each room
 * that still uses them; the counts may only shrink, and a room that is not listed may not use any. Where a
 * word is the field's own, EXCEPTIONS names the phrase and the reason.
 */
import { readFileSync } from 'node:fs'

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

/** @returns {Record<string, number>} */
function checkedIn() {
  return JSON.parse(readFileSync(new URL('../words.json', import.meta.url), 'utf8'))
}

/**
 * @param {{sources: import('../tree.mjs').Source[]}} tree
 * @param {Record<string, number>} [most] The count that each room may have; 0 where it is not listed.
 */
export function words(tree, most = checkedIn()) {
  const byRoom = new Map()
  for (const { path, text } of tree.sources) {
    if (!(FOLDERS.test(path) || DOCUMENTS.test(path)) || LEFT_OUT.test(path)) continue
    const room = /^(src|crates)\/[^/]+(?=\/)|^[^/]+/.exec(path)[0]
    byRoom.set(room, [...(byRoom.get(room) ?? []), ...occurrences(path, text)])
  }
  return [...byRoom].flatMap(([room, found]) => {
    const allowed = most[room] ?? 0
    if (found.length <= allowed) return []
    if (allowed === 0) return found.map(({ path, line, word, instead }) => finding(path, line, word, instead))
    const sentence = `${found.length} words that may not come back, at most ${allowed}; words.json`
    return [{ path: found[0].path, line: found[0].line, message: `${room} has ${sentence} may only shrink` }]
  })
}

function finding(path, line, word, instead) {
  return { path, line, message: `"${word}": write ${instead}` }
}

/** @param {string} path @param {string} text */
function occurrences(path, text) {
  const excepted = EXCEPTIONS.filter((one) => one.path?.test(path) ?? true)
    .flatMap(({ phrase }) => [...text.matchAll(phrase)])
    .map(({ index, 0: phrase }) => ({ from: index, to: index + phrase.length }))
  const found = WORDS.filter(([, , where]) => where?.test(path) ?? true).flatMap(([instead, pattern]) =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => !excepted.some(({ from, to }) => from <= index && index < to))
      .map(({ index, 0: word }) => ({ index, word, instead })),
  )
  return found
    .sort((a, b) => a.index - b.index)
    .map(({ index, ...rest }) => ({ path, line: text.slice(0, index).split('\n').length, ...rest }))
}
