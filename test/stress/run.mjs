/**
 * Runs a stress program as a process of its own, for the tests of what it prints.
 *
 * A program that outlives its time is killed and counts as hung. Its time begins anew with each schedule, so
 * that a start on a busy machine takes none of it.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Why these tests are skipped, or `false`: the programs count threads and descriptors in /proc. */
export const skip = existsSync('/proc/self/task') ? false : 'this system has no /proc'

/** Until the first schedule. */
const START_SECONDS_MAX = 90

/**
 * Run a program of this folder.
 * @param {string} program Its file name.
 * @param {(string | number)[]} args
 * @param {number} secondsMax When it is killed: so long after its last schedule has begun.
 * @param {Record<string, string>} [env]
 * @returns {Promise<{code: number | null, signal: string | null, hung: boolean, out: string, shown: string}>}
 *   `shown` names the last schedule it began and contains all output, for the message of an assertion.
 */
export async function run(program, args, secondsMax, env = {}) {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, ['--expose-gc', path, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  let [hung, late] = [false, undefined]
  const allow = (seconds) => {
    clearTimeout(late)
    late = setTimeout(() => ((hung = true), child.kill('SIGKILL')), seconds * 1000)
  }
  allow(Math.max(secondsMax, START_SECONDS_MAX))
  child.stderr.on('data', (chunk) => {
    err = (err + chunk).slice(-4000)
    if (/schedule \d+/.test(chunk)) allow(secondsMax)
  })
  const [code, signal] = await new Promise((resolve) => child.once('close', (...how) => resolve(how)))
  clearTimeout(late)
  const at = err.match(/schedule \d+/g)?.at(-1) ?? 'no schedule'
  return { code, signal, hung, out, shown: `${at}\n${out}\n${err}` }
}
