/**
 * Test files, each run by Node as a process of its own, with the leak check.
 *
 * A file that failed runs once more, alone, when all steps have ended. If it passes then, the run passes and
 * names the file as flaky, with what it printed: a test that fails by chance is a defect, but not one of the
 * change that it is run for. (Not `node --test`: of a file that hangs it leaves the children, its report of a
 * long run has to be taken apart again by file, and it runs nothing twice on Node 20.)
 */
import { availableParallelism } from 'node:os'
import { ROOT, Stop } from '../set-up/index.mjs'
import { longestFirst, testFiles } from './files.mjs'
import { joined } from './joined.mjs'
import { emptyReport, shown } from './report.mjs'

/** A URL: of a path --import would take what follows a # or ? for something else. */
const LEAKS = new URL('./leaks.mjs', import.meta.url).href
/** A test file that takes longer hangs. */
const FILE_SECONDS_MAX = 10 * 60
/** More failed files than these are not run again: chance is not the reason. */
const RERUN_MAX = 10
/** More than there are cores: many files wait more than they work. */
const FILES_AT_ONCE = availableParallelism() + 1

/**
 * Run test files on a Node.
 * @param {string[]} words Those that one of these chooses; all without any.
 * @param {object} [env] Variables that those of this process override.
 * @param {object} [aloneEnv] Those of a file that runs once more.
 * @returns {Promise<number>} 0 when all passed, or may when they run once more.
 * @throws {Stop} When no file has any of the words.
 */
export async function suite(words, node, report, select = (paths) => paths, env = {}, aloneEnv = env) {
  const files = longestFirst(await select(testFiles(words)))
  if (files.length === 0) throw new Stop(`No test file has ${words.join(' or ')} in its path.`)
  return runFiles(await joined(files), node, report, env, aloneEnv)
}

/** Run these, and leave those that failed for another run. @param {string[]} files Paths. */
export async function runFiles(files, node, report, env = {}, aloneEnv = env) {
  const own = emptyReport()
  const waiting = files.values()
  const lane = async () => {
    for (const file of waiting) {
      const args = ['--import', LEAKS, '--test-reporter=spec', file]
      const [options, alone] = [env, aloneEnv].map((variables) => ({
        cwd: ROOT,
        env: { ...variables, ...cleanEnv() },
        secondsMax: FILE_SECONDS_MAX,
      }))
      await shown(`${file} on ${node.name}`, own, node.path, args, { ...options, alone })
    }
  }
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, lane))
  const { length: failed } = own.again
  console.log(`${files.length - failed} of ${files.length} files have passed on ${node.name}`)
  if (failed <= RERUN_MAX) report.again.push(...own.again)
  else report.failures.push(...own.again.map(({ text }) => text))
  return failed <= RERUN_MAX ? 0 : 1
}

/**
 * npm's own variables would reach programs that tests start, and make them behave as if npm ran them; Node's,
 * which a test of this has, would make a file report to a runner.
 */
function cleanEnv() {
  const isOthers = ([name]) => /^npm_(package|lifecycle|command)|^NODE_TEST_CONTEXT$/.test(name)
  return Object.fromEntries(Object.entries(process.env).filter((entry) => !isOthers(entry)))
}
