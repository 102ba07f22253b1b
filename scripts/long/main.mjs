/**
 * Runs the long steps on this machine: the table of .github/workflows/long.yml, whose runs are their dated
 * record.
 *
 * A step is a command of sh, and fails when it takes longer than its `minutes`. One that a machine cannot run
 * (no nightly compiler, few open files) is skipped: `requires`, a command too, fails there.
 */
import { readFileSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { parse } from 'yaml'
import { inRoot, run, Stop } from '../set-up/index.mjs'

/** The code that `run` returns for a program that it has killed. */
const TIME_IS_OVER = 124

export function longSteps() {
  const text = readFileSync(inRoot('.github', 'workflows', 'long.yml'), 'utf8')
  return parse(text).jobs.long.strategy.matrix.include
}

/**
 * Run steps.
 * @param {string[]} words Those with one of these in their name, or all; `--list` prints them instead.
 * @returns {Promise<number>} 0 when none failed; a skipped one has not failed.
 * @throws {Stop} When no step has such a name.
 */
export async function runLong(words, steps = longSteps()) {
  if (words.includes('--list')) {
    for (const { name, what, minutes } of steps) console.log(`${name.padEnd(16)} ${what}; ${minutes} min`)
    return 0
  }
  const chosen = steps.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
  if (chosen.length === 0)
    throw new Stop(`No step is called ${words.join(' or ')}: see npm run check:long -- --list`)
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
  const outcomes = []
  for (const { name, what, minutes, run: command, requires = 'true' } of chosen) {
    console.log(`\n━━ ${name}: ${what}\n${command}`)
    const { code: missing } = await run('sh', ['-c', requires], { env })
    const options = { env, show: true, secondsMax: minutes * 60 }
    const { code } = missing === 0 ? await run('sh', ['-c', command], options) : { code: 0 }
    const late = code === TIME_IS_OVER ? `: it may take ${minutes} minutes` : ''
    outcomes.push({
      name,
      code,
      outcome: missing === 0 ? `ended with ${code}${late}` : `skipped: ${requires}`,
    })
  }
  console.log(`\n━━\n${outcomes.map(({ name, outcome }) => `${name} ${outcome}`).join('\n')}`)
  return outcomes.every(({ code }) => code === 0) ? 0 : 1
}
