/**
 * The exceptions of today: findings that are known and listed in exceptions.json.
 *
 * The list may only shrink. An entry that nothing needs any more is itself a finding, and so is one that an
 * older commit of the list did not have.
 */
import { spawnSync } from 'node:child_process'

const PATH = 'scripts/tidy/exceptions.json'

/**
 * Findings that no exception covers, and what is wrong with the exceptions.
 * @param {import('./source.mjs').Finding[]} findings
 * @param {Record<string, string[]>} listed Rule to entries "path subject".
 * @returns {import('./source.mjs').Finding[]}
 */
export function applyExceptions(findings, listed) {
  const keyOf = ({ path, subject }) => `${path} ${subject}`
  const open = findings.filter((finding) => !listed[finding.rule]?.includes(keyOf(finding)))
  const unused = Object.entries(listed).flatMap(([rule, entries]) => {
    const needed = new Set(findings.filter((finding) => finding.rule === rule).map(keyOf))
    return entries
      .filter((entry) => !needed.has(entry))
      .map((entry) => complaint(rule, entry, 'is not needed any more: remove it'))
  })
  return [...open, ...unused]
}

/**
 * Entries that an earlier list does not have.
 * @param {Record<string, string[]>} now
 * @param {Record<string, string[]>} before
 * @returns {import('./source.mjs').Finding[]}
 */
export function grown(now, before) {
  return Object.entries(now).flatMap(([rule, entries]) => {
    const known = new Set(before[rule])
    return entries
      .filter((entry) => !known.has(entry))
      .map((entry) => complaint(rule, entry, 'was added: the list may only shrink'))
  })
}

function complaint(rule, entry, message) {
  return { rule: 'exceptions', path: PATH, line: 1, subject: entry, message: `${rule}: ${entry} ${message}` }
}

/**
 * The list as its first commit had it; `undefined` before that, and where git has no history.
 * @param {string} root
 */
export function firstList(root) {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout ?? ''
  const commits = git('log', '--diff-filter=A', '--format=%H', '--', PATH).trim().split('\n').filter(Boolean)
  if (commits.length === 0) return undefined
  return JSON.parse(git('show', `${commits[0]}:${PATH}`))
}
