/**
 * What a run prints at its end: why steps failed, whole, then a summary, then the same in LINES_MAX lines.
 *
 * Steps write side by side, and a log may be kept only from its end. So each step gathers what failed as
 * texts: a line that names where, then entries that begin with `✖`. A step that fails without an entry has
 * one all the same. The last lines show every entry, each with as much of it as there is room for.
 */
import { run } from '../set-up/index.mjs'

const LINES_MAX = 60
/** Last lines that are shown of a program whose output is not understood. */
const TAIL_LINES = 20

/**
 * @typedef {object} Report What a step gathers.
 * @property {string[]} failures What failed.
 * @property {string[]} flaky What failed and passed alone.
 * @property {Again[]} again What runs once more when all steps have ended, alone.
 *
 * @typedef {object} Again
 * @property {string} text What failed the first time.
 * @property {() => Promise<number>} run
 */

/** @returns {Report} */
export const emptyReport = () => ({ failures: [], flaky: [], again: [] })

/** An entry of a text. @param {string} head @param {string} text */
export function entry(head, text) {
  const lines = text.trimEnd().split('\n')
  return `✖ ${head}\n${lines.map((line) => `    ${line}\n`).join('')}`
}

/**
 * Run a program and show its output when it has ended, since another step may write meanwhile. When it fails,
 * what it lists as failures is why, or the last of its output.
 * @param {string} what @param {Report} report @param {string} program @param {string[]} args
 * @param {Parameters<typeof run>[2] & {isAgain?: boolean}} [options] `isAgain`: it may have failed by chance,
 *   and is left for another run.
 * @returns {Promise<number>} Its exit code; 0 when it is left.
 */
export async function shown(what, report, program, args, { isAgain = false, ...options } = {}) {
  const { code, output } = await run(program, args, options)
  process.stdout.write(output)
  if (code === 0) return 0
  const why =
    /^failures:\n[^]*/m.exec(output)?.[0] ?? output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
  const text = `${what}\n${entry(`ended with ${code}`, why)}`
  if (!isAgain) report.failures.push(text)
  else report.again.push({ text, run: () => shown(what, { failures: [] }, program, args, options) })
  return isAgain ? 0 : code
}

/**
 * Run once more, alone, what asked for it.
 * @param {Report} report
 * @returns {Promise<number>} 0 when all passed now; they are flaky.
 */
export async function runAgain(report) {
  let failed = 0
  for (const { text, run: again } of report.again) {
    console.log(`\n── once more, alone: ${text.slice(0, text.indexOf('\n'))}`)
    const code = await again()
    report[code === 0 ? 'flaky' : 'failures'].push(text)
    if (code !== 0) failed += 1
  }
  return failed
}

/**
 * The end of a run.
 * @param {{name: string, code: number, seconds: number, report: Report}[]} results
 * @returns {string}
 */
export function ending(results) {
  const failures = results.flatMap(({ report }) => report.failures)
  const flaky = results.flatMap(({ report }) => report.flaky)
  const texts = [
    ...flaky.map((text) => `flaky, it passed when run alone: ${text}`),
    ...failures.map((text) => `what failed on ${text}`),
  ]
  const failed = results.filter(({ code }) => code !== 0).map(({ name }) => name)
  const table = results.map(
    ({ name, code, seconds }) =>
      `${code === 0 ? 'pass' : 'FAIL'}  ${name.padEnd(9)} ${seconds.toFixed(0).padStart(5)} s`,
  )
  const last = [
    ...flaky.map((text) => `flaky: ${text.slice(0, text.indexOf('\n'))}`),
    failed.length === 0 ? 'everything passed' : `failed: ${failed.join(', ')}`,
    ...shortened(failures, LINES_MAX),
  ]
  return [...texts.map((text) => `\n━━ ${text.trimEnd()}`), '\n━━ npm test', ...table, ...last].join('\n')
}

/**
 * Entries in so many lines: all of them, with as many lines of each as fit; where not even their first lines
 * do, as many entries as fit and how many more there are.
 * @param {string[]} texts @param {number} linesMax
 */
export function shortened(texts, linesMax) {
  const entries = texts.flatMap((text) =>
    text
      .trimEnd()
      .split(/\n(?=✖ )/)
      .map((each) => each.split('\n')),
  )
  const linesWith = (most) => entries.flatMap((lines) => lines.slice(0, most))
  let most = 1
  while (most < linesMax && linesWith(most + 1).length <= linesMax) most += 1
  const lines = linesWith(most)
  if (lines.length <= linesMax) return lines
  return [...lines.slice(0, linesMax - 1), `… and ${lines.length - linesMax + 1} more, above`]
}
