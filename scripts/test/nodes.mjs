/**
 * The other Nodes that the suite runs on, from npm packages.
 *
 * They are installed below .set-up/ from a lock file of their own (scripts/nodes), because the packages exist
 * for Linux x64 alone and would fail `npm ci` everywhere else. Elsewhere the suite runs on the Node that
 * started it.
 */
import { join } from 'node:path'
import { inRoot, installCopy, MEMORY } from '../set-up/index.mjs'
import { betweenOf, newestOf } from './files.mjs'
import { suite } from './suite.mjs'

/** Whether npm has other Nodes for this machine. */
export const HAS_OTHERS = process.platform === 'linux' && process.arch === 'x64'
const MAJORS = [22, 24, 26]
const FOLDER = join(MEMORY, 'nodes')
/** Of the sizes of tests: `coverage` and `slow` do the first, the newest Nodes do the others. */
const PARTS = 3

/**
 * Run what depends on the Node on all of them.
 * @param {string[]} words Those with one of these in their path instead.
 * @returns {Promise<number>} 0 when all passed on each.
 */
export async function onOtherNodes(report, words) {
  const nodes = await otherNodes()
  if (nodes.length === 0) {
    console.log(`skipped: npm has no Node packages for ${process.platform} ${process.arch}`)
    return 0
  }
  let failed = 0
  for (const [index, { major, path }] of nodes.entries()) {
    const part = Math.max(1, index + 1 + PARTS - nodes.length)
    console.log(`\n── Node ${major}, part ${part}`)
    const env = { CORESPUN_TEST_PART: `${part}/${PARTS}` }
    const chosen = part === 1 ? betweenOf : (paths) => newestOf(paths, part)
    const select = words.length > 0 ? undefined : chosen
    if ((await suite(words, { name: `Node ${major}`, path }, report, select, env)) !== 0) failed += 1
  }
  return failed === 0 ? 0 : 1
}

/**
 * Install the other Nodes where that is possible.
 * @returns {Promise<{major: number, path: string}[]>} All but the major version that runs this, if any.
 */
export async function otherNodes() {
  if (!HAS_OTHERS) return []
  await installCopy('Node 22, 24 and 26', inRoot('scripts', 'nodes'), FOLDER)
  const own = Number(process.versions.node.split('.')[0])
  const others = MAJORS.filter((major) => major !== own)
  const pathOf = (major) => join(FOLDER, 'node_modules', `node-${major}`, 'bin', 'node')
  return others.map((major) => ({ major, path: pathOf(major) }))
}
