/**
 * Runs steps, and prints at the end what became of them.
 *
 * Words on the command line that name steps choose among them; the other words choose among the test files,
 * slow ones too. Every step runs even when one before it failed. What failed and may have failed by chance
 * runs once more when nothing else runs.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, run, Stop } from '../set-up/index.mjs'
import { contentOf } from '../set-up/paths.mjs'
import { ending, emptyReport, entry, runAgain } from './report.mjs'
import { listed, SHORT, STEPS } from './steps.mjs'

/** Has the commit that has passed `--all`, for a release. */
const PASSED = join(MEMORY, 'passed')

/**
 * Run the chosen steps; when none is named, those of `npm test`, or all of them.
 * @param {string[]} words With `--all`, or `--list` to print the table instead.
 * @returns {Promise<number>} 0 when every step passed.
 */
export async function runTests(words) {
  if (words.includes('--list')) {
    console.log(listed())
    return 0
  }
  const named = STEPS.filter(({ name }) => words.includes(name))
  const filters = words.filter((word) => !word.startsWith('--') && !STEPS.some(({ name }) => name === word))
  const unnamed =
    filters.length > 0
      ? ['suite']
      : words.includes('--all')
        ? STEPS.filter(({ instead }) => instead === undefined).map(({ name }) => name)
        : SHORT
  const chosen = named.length > 0 ? named : STEPS.filter(({ name }) => unnamed.includes(name))
  const results = await runSteps(chosen, filters)
  console.log(ending(results))
  const code = results.every((result) => result.code === 0) ? 0 : 1
  const git = async (...args) => (await run('git', args)).output.trim()
  if (code === 0 && words.join() === '--all' && (await git('status', '--porcelain')) === '')
    writeFileSync(PASSED, await git('rev-parse', 'HEAD'))
  return code
}

/** Whether a checkout of this commit has passed `--all` here. */
export function hasPassed(commit) {
  return contentOf(PASSED) === commit
}

/**
 * Run steps in two lanes, then what asked to run once more.
 * @returns {Promise<Parameters<typeof ending>[0]>} In the order of the steps.
 */
export async function runSteps(steps, filters) {
  const results = steps.map((step) => ({ name: step.name, code: 0, seconds: 0, report: emptyReport(), step }))
  const names = steps.map(({ name }) => name)
  const lane = async (isBeside) => {
    for (const result of results) {
      if ((result.step.isBeside === true) === isBeside) await timed(result, filters, names)
    }
  }
  await Promise.all([lane(false), lane(true)])
  for (const result of results) {
    result.code = Math.max(result.code, (await result.report.later) ?? 0)
    if ((await runAgain(result.report)) > 0) result.code = 1
  }
  return results
}

async function timed(result, filters, names) {
  const { name, title, work } = result.step
  console.log(`\n━━ ${name}: ${title}`)
  const { report } = result
  const startedMs = performance.now()
  result.code = await work(report, filters, names).catch((error) => {
    const text = error instanceof Stop ? error.message : String(error.stack)
    console.error(text)
    report.failures.push(`${name}\n${entry(name, text)}`)
    return 1
  })
  result.seconds = (performance.now() - startedMs) / 1000
  if (result.code !== 0 && report.failures.length === 0)
    report.failures.push(`${name}\n${entry(name, 'It names no failure: see its output above.')}`)
  console.log(`\n━━ ${name} ended with ${result.code} after ${result.seconds.toFixed(0)} s`)
}
