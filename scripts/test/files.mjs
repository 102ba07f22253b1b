/**
 * Which test files there are, and which of them are worth a second run on another Node.
 *
 * Tests lie beside the code (compiled to dist), in test/ when they cross modules, and in scripts/ and bench/
 * for the tools. Tools, the packed tarball and the documentation's programs do not depend on the Node that
 * runs them enough to run four times; everything else is the core.
 */
import { relative } from 'node:path'
import { filesBelow, inRoot } from '../set-up/index.mjs'

const ROOTS = ['dist', 'test', 'scripts']
const ONCE = /^(scripts|test\/(browser|package|docs))\//
const IS_TEST = /\.test\.m?js$/

/**
 * All test files, as paths from the checkout.
 * @param {string[]} [words] Keep those whose path has one of these.
 */
export function testFiles(words = []) {
  const all = ROOTS.flatMap((root) => filesBelow(inRoot(root), (path) => IS_TEST.test(path)))
  const paths = all.map((path) => relative(inRoot(), path))
  return words.length === 0 ? paths : paths.filter((path) => words.some((word) => path.includes(word)))
}

/** Those that run on every Node. @param {string[]} paths */
export function coreOf(paths) {
  return paths.filter((path) => !ONCE.test(path))
}
