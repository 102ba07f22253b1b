/**
 * Runs the long steps and writes what came of them to bench/records/<date>-check-long.json.
 *
 * One record a day: a step that runs again on the same day replaces its entry, the others stay. The record
 * contains on which commit and machine, how long, and the last lines of what was printed, so that it can be
 * believed or doubted later.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, release } from 'node:os'
import { inRoot, run, Stop } from '../set-up/index.mjs'
import { STEPS } from './steps.mjs'

const RECORDS = inRoot('bench', 'records')
const TAIL_LINES = 12
/** The code that `run` returns for a program that it has killed. */
const TIME_IS_OVER = 124

/** Print the steps and how long each may take. @returns {number} 0. */
export function listSteps() {
  for (const { name, what, minutesMax } of STEPS)
    console.log(`${name.padEnd(16)} ${`${minutesMax} min at most`.padEnd(16)} ${what}`)
  return 0
}

/**
 * Run steps and record each as it ends.
 * @param {string[]} words Those with one of these in their name; none means all.
 * @returns {Promise<number>} 0 when none failed; a skipped one has not failed.
 * @throws {Stop} When no step has such a name.
 */
export async function runLong(words) {
  const chosen = STEPS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
  if (chosen.length === 0)
    throw new Stop(`No step is called ${words.join(' or ')}: see npm run check:long -- --list`)
  let failed = 0
  for (const step of chosen) {
    console.log(`\n━━ ${step.name}: ${step.what}`)
    const entry = await outcomeOf(step)
    console.log(`${entry.outcome} after ${entry.seconds} s`)
    if (entry.outcome === 'failed') failed += 1
    await record(step.name, entry)
  }
  return failed === 0 ? 0 : 1
}

async function outcomeOf({ command, minutesMax, env = {}, lacks = async () => '' }) {
  const missing = await lacks()
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value.replaceAll(inRoot(), '')}`)
  const line = [...variables, ...command.map((word) => (word === process.execPath ? 'node' : word))].join(' ')
  if (missing !== '') return { outcome: `skipped: ${missing}`, seconds: 0, command: line, tail: [] }
  const startedMs = performance.now()
  const [program, ...args] = command
  const secondsMax = minutesMax * 60
  const { code, output } = await run(program, args, { env: { ...process.env, ...env }, secondsMax })
  if (code !== 0) console.log(output)
  const outcome = code === 0 ? 'passed' : 'failed'
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  const tail = output.trimEnd().split('\n').slice(-TAIL_LINES)
  const shown = tail.map((text) => text.replaceAll(inRoot(), ''))
  if (code === TIME_IS_OVER) shown.push(`Ended: a run may take ${minutesMax} minutes.`)
  return { outcome, seconds, command: line, tail: shown }
}

async function record(name, entry) {
  const now = new Date().toISOString()
  const path = inRoot('bench', 'records', `${now.slice(0, 10)}-check-long.json`)
  mkdirSync(RECORDS, { recursive: true })
  const before = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).steps : {}
  const steps = { ...before, [name]: { at: now, commit: await commit(), ...entry } }
  const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), kernel: release() }
  const whole = { table: 'check-long', machine: { ...machine, node: process.version }, steps }
  writeFileSync(path, `${JSON.stringify(whole, undefined, 2)}\n`)
}

/** The commit, with a `+` when files other than records differ from it. */
async function commit() {
  const { code, output } = await run('git', ['rev-parse', '--short=10', 'HEAD'])
  if (code !== 0) return 'unknown'
  const changed = await run('git', ['status', '--porcelain', '--', '.', ':!bench/records'])
  return output.trim() + (changed.output === '' ? '' : '+')
}
