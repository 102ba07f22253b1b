/**
 * Test files run by Node's runner.
 *
 * Each has a process of its own with the leak check; what failed is gathered for the end. A file that failed
 * runs once more, alone, when all steps have ended. If it passes then, the run passes and names the file as
 * flaky, with what it printed: a test that fails by chance is a defect, but not one of the change that it is
 * run for.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, run, Stop } from '../set-up/index.mjs'
import { longestFirst, testFiles } from './files.mjs'
import { joined } from './joined.mjs'

/** A URL: of a path --import would take what follows a # or ? for something else. */
const LEAKS = new URL('./leaks.mjs', import.meta.url).href
const FAILURES = new URL('./failures.mjs', import.meta.url).href
/** A test file that takes longer hangs. */
const FILE_MS_MAX = 10 * 60_000
/** More failed files than these are not run again. */
const RERUN_MAX = 10
/** More than there are cores: many files wait more than they work. */
const FILES_AT_ONCE = availableParallelism() + 1

/**
 * Run test files on a Node.
 * @param {string[]} words Those that one of these chooses; all without any.
 * @param {{name: string, path: string}} node
 * @param {import('./report.mjs').Report} report
 * @param {(paths: string[]) => string[] | Promise<string[]>} [select]
 * @param {object} [env] Variables that those of this process override.
 * @param {object} [aloneEnv] Those of a file that runs once more.
 * @returns {Promise<number>} 0 when all passed, or may when they run once more.
 * @throws {Stop} When no file has any of the words.
 */
export async function suite(words, node, report, select = (paths) => paths, env = {}, aloneEnv = env) {
  const files = longestFirst(await select(testFiles(words)))
  if (files.length === 0) throw new Stop(`No test file has ${words.join(' or ')} in its path.`)
  // Coverage is measured by module.
  const isByModule = 'NODE_V8_COVERAGE' in env
  return runFiles(isByModule ? files : await joined(files), node, report, env, aloneEnv)
}

/** Run these, and leave those that failed for another run. @param {string[]} files Paths. */
export async function runFiles(files, node, report, env = {}, aloneEnv = env) {
  const { code, failed } = await ran(files, node, env, FILES_AT_ONCE)
  if (code === 0) return 0
  const again = failedFiles(failed, files)
  // Where nothing names a file, or very many failed, chance is not the reason.
  if (again.length === 0 || again.length > RERUN_MAX) {
    report.failures.push(`${node.name}\n${failed}`)
    return code
  }
  for (const file of again) {
    const text = `${file} on ${node.name}\n${entriesOf(failed, file)}`
    report.again.push({ text, run: async () => (await ran([file], node, aloneEnv, 1)).code })
  }
  return 0
}

/** Run files on a Node; `failed` is what the reporter of failures wrote. */
async function ran(files, node, env, atOnce) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-failures-'))
  const failed = join(folder, 'failed.txt')
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout']
  reporters.push(`--test-reporter=${FAILURES}`, `--test-reporter-destination=${failed}`)
  const flags = ['--import', LEAKS, '--test', ...reporters, `--test-timeout=${FILE_MS_MAX}`]
  const args = [...flags, `--test-concurrency=${atOnce}`, ...files]
  try {
    const { code } = await run(node.path, args, { show: true, cwd: ROOT, env: { ...env, ...cleanEnv() } })
    return { code, failed: existsSync(failed) ? readFileSync(failed, 'utf8') : '' }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The files that the reporter's text names. @param {string} text @param {string[]} files */
function failedFiles(text, files) {
  return files.filter((file) => entriesOf(text, file) !== '')
}

/** A file's entries in that text, with what it wrote last, and those of tests in helpers. */
function entriesOf(text, file) {
  const heads = [`✖ ${file}: `, `✖ ${file} `, `  ${file} wrote`, `  ${file} has failed`]
  const entries = text.split(/^(?=✖ | {2}\S)/m)
  const found = entries.filter((entry) => heads.some((head) => entry.startsWith(head)))
  if (found.length === 0) return ''
  const helped = entries.filter((entry) => /^✖ \S+\.test\.support\.js: /.test(entry))
  return [...found, ...helped].join('')
}

/** npm's own variables would reach programs that tests start, and make them behave as if npm ran them. */
function cleanEnv() {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command)/.test(name),
  )
  return Object.fromEntries(entries)
}
