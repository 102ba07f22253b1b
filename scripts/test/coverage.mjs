/**
 * Which lines of src the tests reach, and that it does not become less.
 *
 * The suite of `npm test` with V8's own counters, of all threads and child processes, mapped back to the
 * sources by c8; it fails below LINES_MIN. Of the tests that need a server of NATS, the fast ones run as
 * well, so a run with this step leaves out the suite. Of each size it does a third where there are other
 * Nodes, which do the rest of what depends on the Node. Of tables of programs it does all rows.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, MEMORY } from '../set-up/index.mjs'
import { fastOf, testFiles } from './files.mjs'
import { joined, joinedEnv } from './joined.mjs'
import { serverEnv } from './nats.mjs'
import { HAS_OTHERS, otherNodes } from './nodes.mjs'
import { shown } from './report.mjs'
import { suite } from './suite.mjs'

/** Percent of lines of src that tests reach at least. A change that raises the figure raises this. */
const LINES_MIN = 98.5

/** Measure; 0 when all tests passed. Whether they reach enough lines is judged beside the next step. */
export async function coverage(words, report) {
  // Not below the tests' own folder for temporary files, which they must leave empty.
  const folder = mkdtempSync(join(MEMORY, 'coverage-'))
  const counted = join(folder, 'counted')
  mkdirSync(counted)
  const node = { name: `Node ${process.versions.node}, with coverage`, path: process.execPath }
  const part = HAS_OTHERS && { CORESPUN_TEST_PART: '1/3', CORESPUN_TEST_ROWS: 'all' }
  const alone = { ...(await serverEnv()), ...part, ...joinedEnv() }
  const env = { ...alone, NODE_V8_COVERAGE: counted }
  await otherNodes() // what needs SQLite runs there when this Node lacks it
  if (words.length > 0) await joined(testFiles()) // of which the words may choose none
  let code = 1
  try {
    code = await suite(words, node, report, fastOf, env, alone)
  } finally {
    const removed = () => rmSync(folder, { recursive: true, force: true })
    report.later = judged(folder, counted, report).finally(removed)
  }
  return code
}

async function judged(folder, counted, report) {
  const summed = join(folder, 'summed')
  mkdirSync(summed)
  const sum = [inRoot('scripts', 'test', 'counters.mjs'), counted, join(summed, 'sum.json')]
  const code = await shown('coverage', report, process.execPath, sum)
  if (code !== 0) return code
  const judge = [inRoot('node_modules', 'c8', 'bin', 'c8.js'), 'report', '--temp-directory', summed]
  // By what was loaded, before it is mapped to src: Node's own modules would cost more time than ours.
  judge.push('--include', '{dist,joined}/**/*.js', '--exclude', '**/*.test.*')
  judge.push('--reporter', 'text-summary')
  const limits = ['--check-coverage', '--lines', String(LINES_MIN)]
  return shown('coverage', report, process.execPath, [...judge, ...limits])
}
