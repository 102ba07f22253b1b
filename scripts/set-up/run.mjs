/**
 * Other programs, started by the scripts: quiet while they succeed, shown whole when they fail.
 *
 * No shell is involved, so nothing needs quoting. A program that is missing is an answer here, not an error:
 * the caller's message names what to install.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { ROOT } from './paths.mjs'
import { Stop } from './stop.mjs'

/**
 * Start a program in the checkout and wait for its end: `code` is 127 when it is missing, 128 when a signal
 * ended it, 124 when its time was over; `output` is what it printed, '' when it was shown live.
 * @param {{show?: boolean, env?: NodeJS.ProcessEnv, cwd?: string, secondsMax?: number,
 *   onText?: (text: string) => void}} [options] `show`: straight to the terminal; `secondsMax`: after so many
 *   it is killed, with all it started; `onText` receives what it prints when it does.
 */
export function run(program, args, { show = false, env = process.env, cwd = ROOT, secondsMax, onText } = {}) {
  return new Promise((resolve) => {
    const stdio = show ? 'inherit' : ['ignore', 'pipe', 'pipe']
    // A group of its own can be killed as a whole; Windows has no groups.
    const detached = secondsMax !== undefined && process.platform !== 'win32'
    const child = spawn(program, args, { cwd, env, stdio, detached })
    const chunks = []
    const end = detached ? (signal) => endGroup(child.pid, signal) : (signal) => child.kill(signal)
    let isLate = false
    const late = () => {
      isLate = true
      end('SIGKILL')
    }
    const timer = secondsMax === undefined ? undefined : setTimeout(late, secondsMax * 1000)
    track(child, end)
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => chunks.push(chunk))
    if (onText !== undefined) child.stdout?.on('data', (chunk) => onText(String(chunk)))
    child.on('error', (error) => {
      clearTimeout(timer)
      resolve({ code: 127, output: String(error.message) })
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code: isLate ? 124 : (code ?? 128), output: Buffer.concat(chunks).toString() })
    })
  })
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** Programs that run now, and the functions that end them: they end with this process. */
const running = new Map()

function track(child, end) {
  if (running.size === 0) for (const signal of SIGNALS) process.on(signal, endAll)
  running.set(child, end)
  const forget = () => {
    if (running.delete(child) && running.size === 0) for (const signal of SIGNALS) process.off(signal, endAll)
  }
  child.once('error', forget)
  child.once('close', forget)
}

/** Ends the programs, then this process, by that signal. */
function endAll(signal) {
  for (const end of running.values()) end(signal)
  for (const each of SIGNALS) process.off(each, endAll)
  process.kill(process.pid, signal)
}

/** Sends a signal to a program that leads a group, and to the group. */
function endGroup(pid, signal) {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    // It has ended in between.
    if (error.code !== 'ESRCH') throw error
  }
}

/**
 * Like {@link run}, but a failure stops the script.
 * @param {string} what What was being done, for the sentence.
 * @throws {Stop} With everything the program printed.
 */
export async function must(what, program, args, options) {
  const { code, output } = await run(program, args, options)
  if (code !== 0)
    throw new Stop(`${output}\n${what} failed: \`${program} ${args.join(' ')}\` ended with ${code}.`)
  return output
}

/** npm as program and leading arguments: the npm that runs us if one does, else the one on the PATH. */
export function npm() {
  const own = process.env.npm_execpath ?? ''
  if (own.endsWith('npm-cli.js') && existsSync(own)) return { program: process.execPath, args: [own] }
  return { program: process.platform === 'win32' ? 'npm.cmd' : 'npm', args: [] }
}
