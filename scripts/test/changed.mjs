/**
 * Tests of the tools, which `npm test` leaves out where the tools have not changed.
 *
 * What counts is the difference from the commit that the branch left main at, what is not committed included.
 * Without git, or on main itself before a commit, nothing can be compared or has changed. `npm run test:all`
 * runs all of them.
 */
import { run } from '../set-up/index.mjs'

/** Which test files, and the files on which what they test depends. */
const TOOLS = [
  [/^scripts\//, /^(scripts\/|package(-lock)?\.json$)/],
  [/^test\/fleet\/manifests\./, /^(test\/fleet|examples\/fleet|src\/(cli|fleet))\//],
]

/** Those that are not of tools, or of tools that have changed. @param {string[]} paths */
export async function withoutUnchangedTools(paths) {
  const changed = await changedFiles()
  const left = changed === undefined ? paths : withoutTools(paths, changed)
  if (left.length < paths.length)
    console.log(`left out, since the tools have not changed: ${paths.length - left.length} files`)
  return left
}

/** @param {string[]} paths @param {string[]} changed */
export function withoutTools(paths, changed) {
  const isLeft = (path) =>
    TOOLS.every(([tests, tools]) => !tests.test(path) || changed.some((each) => tools.test(each)))
  return paths.filter(isLeft)
}

/** Files that differ from main; `undefined` where there is no main. */
async function changedFiles() {
  for (const main of ['origin/main', 'main']) {
    const base = await run('git', ['merge-base', 'HEAD', main])
    if (base.code !== 0) continue
    const differing = await run('git', ['diff', '--name-only', base.output.trim()])
    const untracked = await run('git', ['ls-files', '--others', '--exclude-standard'])
    if (differing.code !== 0 || untracked.code !== 0) return undefined
    return `${differing.output}${untracked.output}`.split('\n').filter(Boolean)
  }
  return undefined
}
