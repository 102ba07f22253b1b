/**
 * Test files run by Node's runner.
 *
 * Each has a process of its own with the leak check; what failed is gathered for the end.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, run, Stop } from '../set-up/index.mjs'
import { testFiles } from './files.mjs'

/** A URL: of a path --import would take what follows a # or ? for something else. */
const LEAKS = new URL('./leaks.mjs', import.meta.url).href
const FAILURES = new URL('./failures.mjs', import.meta.url).href
/** A test file that takes longer hangs. */
const FILE_MS_MAX = 10 * 60_000
/** More than there are cores: many files wait more than they work. */
const FILES_AT_ONCE = availableParallelism() + 1

/**
 * Run test files on a Node.
 * @param {string[]} words Those whose path has one of these; all without any.
 * @param {{name: string, path: string}} node
 * @param {string[]} failures Gets what failed, as text.
 * @param {(paths: string[]) => string[]} [select]
 * @param {object} [env] Variables that those of this process override.
 * @returns {Promise<number>} 0 when all passed.
 * @throws {Stop} When no file has any of the words.
 */
export async function suite(words, node, failures, select = (paths) => paths, env = {}) {
  const files = select(testFiles(words))
  if (files.length === 0) throw new Stop(`No test file has ${words.join(' or ')} in its path.`)
  const folder = mkdtempSync(join(tmpdir(), 'corespun-failures-'))
  const failed = join(folder, 'failed.txt')
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout']
  reporters.push(`--test-reporter=${FAILURES}`, `--test-reporter-destination=${failed}`)
  const flags = ['--import', LEAKS, '--test', ...reporters, `--test-timeout=${FILE_MS_MAX}`]
  const args = [...flags, `--test-concurrency=${FILES_AT_ONCE}`, ...files]
  try {
    const { code } = await run(node.path, args, { show: true, cwd: ROOT, env: { ...env, ...cleanEnv() } })
    if (code !== 0) failures.push(`${node.name}\n${readFileSync(failed, 'utf8')}`)
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** npm's own variables would reach programs that tests start, and make them behave as if npm ran them. */
function cleanEnv() {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command)/.test(name),
  )
  return Object.fromEntries(entries)
}
