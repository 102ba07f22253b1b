/**
 * What a run prints at its end: a summary, why steps failed, whole, then the names of what failed.
 *
 * Steps write side by side, and a log may be kept only from its end. So each step gathers what failed as
 * texts: a line that names where, then entries that begin with `✖`. A step that fails without an entry has
 * one all the same.
 */
import { run } from '../set-up/index.mjs'

/** Names in the last lines. */
const LINES_MAX = 60
/** Last lines that are shown of a program whose output is not understood. */
const TAIL_LINES = 20
/** What cargo and Node's test runner list at their end. */
const LISTED = /^(?:failures|✖ failing tests):\n([^]*)/m
/** The sums of a test file. */
const SUMS = /^ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm

/**
 * @typedef {object} Report What a step gathers.
 * @property {string[]} failures What failed.
 * @property {string[]} flaky What failed and passed alone.
 * @property {Again[]} again What runs once more when all steps have ended, alone.
 * @property {Promise<number>} [later] What goes on beside the next steps, and its exit code.
 *
 * @typedef {object} Again
 * @property {string} text What failed the first time.
 * @property {string} whole All that it printed then: a seed may be anywhere in it.
 * @property {() => Promise<number>} run
 */

export const emptyReport = () => ({ failures: [], flaky: [], again: [] })

/** An entry of a text. */
export function entry(head, text) {
  const lines = text.trimEnd().split('\n')
  return `✖ ${head}\n${lines.map((line) => `    ${line}\n`).join('')}`
}

/**
 * Run a program and show its output when it has ended, since another one may write meanwhile. When it fails,
 * what it lists as failures is why, or the last of its output.
 * @param {Parameters<typeof run>[2] & {alone?: Parameters<typeof run>[2]}} [options] `alone`: it may have
 *   failed by chance, and is left for another run with these.
 * @returns {Promise<number>} Its exit code; 0 when it is left.
 */
export async function shown(what, report, program, args, { alone, ...options } = {}) {
  const { code, output } = await run(program, args, options)
  process.stdout.write(output.replace(SUMS, ''))
  if (code === 0) return 0
  const text = `${what}\n${failuresIn(output) ?? entry(`ended with ${code}`, tail(output))}`
  const whole = `${what}\n${entry('its whole output', output)}`
  if (alone === undefined) report.failures.push(text)
  else report.again.push({ text, whole, run: () => shown(what, emptyReport(), program, args, alone) })
  return alone === undefined ? code : 0
}

/** An entry for each test that Node lists, and one for all that cargo does. */
function failuresIn(output) {
  const [, listed] = LISTED.exec(output) ?? []
  if (listed === undefined) return undefined
  return /^✖ /m.test(listed) ? listed.replace(/^(test at .*)?\n/gm, '') : entry('failures', listed.trim())
}

const tail = (output) => output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')

/**
 * Run once more, alone, what asked for it.
 * @returns {Promise<number>} 0 when all passed now; they are flaky.
 */
export async function runAgain(report) {
  let failed = 0
  for (const { text, whole, run: again } of report.again) {
    console.log(`\n── once more, alone: ${text.slice(0, text.indexOf('\n'))}`)
    const code = await again()
    if (code === 0) report.flaky.push(whole)
    else report.failures.push(text)
    if (code !== 0) failed += 1
  }
  return failed
}

/** The end of a run: its steps, what failed, whole, and the heads of that. */
export function ending(results) {
  const failures = results.flatMap(({ report }) => report.failures)
  const flaky = results.flatMap(({ report }) => report.flaky)
  const failed = results.filter(({ code }) => code !== 0).map(({ name }) => name)
  const table = results.map(
    ({ name, code, seconds }) =>
      `${code === 0 ? 'pass' : 'FAIL'}  ${name.padEnd(9)} ${seconds.toFixed(0).padStart(5)} s`,
  )
  const heads = failures.flatMap((text) => text.split('\n').filter((line) => /^\S/.test(line)))
  return [
    '\n━━ npm test',
    ...table,
    ...flaky.map((text) => `\n━━ flaky, it passed when run alone: ${text.trimEnd()}`),
    ...failures.map((text) => `\n━━ what failed on ${text.trimEnd()}`),
    ...flaky.map((text) => `flaky: ${text.slice(0, text.indexOf('\n'))}`),
    failed.length === 0 ? 'everything passed' : `failed: ${failed.join(', ')}`,
    ...heads.slice(0, LINES_MAX),
    ...(heads.length > LINES_MAX ? [`… and ${heads.length - LINES_MAX} more, above`] : []),
  ].join('\n')
}
