/**
 * Everything between a fresh clone and a program that runs: tools checked, packages installed, core and
 * TypeScript compiled.
 *
 * The records of npm, tsc and cargo decide what is to be done; it keeps no record. Under a lock, so that two
 * may be started at once. Where all is current this costs a second.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from './bundle.mjs'
import { installPackages } from './install.mjs'
import { locked } from './lock.mjs'
import { compileCore, placeCore } from './native.mjs'
import { MEMORY, NATIVE, ROOT } from './paths.mjs'
import { run } from './run.mjs'
import { Stop } from './stop.mjs'
import { compileTypeScript } from './typescript.mjs'

export { installCopy } from './install.mjs'
export { locked } from './lock.mjs'
export { compile, MESSAGES, messagesOf, releasedCore } from './native.mjs'
export { doors, filesBelow, inRoot, MEMORY, ROOT } from './paths.mjs'
export { must, npm, run } from './run.mjs'
export { Stop } from './stop.mjs'
export { tsc } from './typescript.mjs'

/** So often a step prints how long it has taken; in less, most only find that nothing is to be done. */
const PROGRESS_MS = 5000

/**
 * Bring the checkout up to date.
 * @param {{report?: (line: string) => void}} [options] Receives progress; standard error by default.
 * @throws {Stop} With one sentence when a tool is missing, or with the output of what failed.
 */
export async function setUp({ report = console.error } = {}) {
  await findCargo()
  if (!mustWrite(MEMORY, NATIVE)) return
  await locked(ROOT, () => workThrough(report), report)
}

/** Before anything is installed. Its age is compared by cargo with `rust-version`. */
async function findCargo() {
  const { code, output } = await run('cargo', ['--version'])
  const install = 'install Rust from https://rustup.rs'
  if (code === 127) throw new Stop(`Corespun compiles its core with Rust and there is no cargo: ${install}.`)
  if (code !== 0) throw new Stop(`${output.trim()}\ncargo does not start: ${install}.`)
}

/**
 * Whether the set-up can do its work; a checkout that somebody else has set up is used as it is.
 * @param {string} memory A folder of the checkout, made when missing.
 * @param {string} native Where its core lies.
 * @throws {Stop} When it cannot and there is no core.
 */
export function mustWrite(memory, native) {
  try {
    mkdirSync(memory, { recursive: true })
    rmdirSync(mkdtempSync(join(memory, 'probe-')))
    return true
  } catch ({ code }) {
    if (existsSync(native) && readdirSync(native).some((name) => name.endsWith('.node'))) return false
    const problem = `${memory} cannot be written (${code}) and this checkout is not set up`
    throw new Stop(`${problem}: make it writable for this user, or set up a copy of it.`)
  }
}

/**
 * cargo runs beside npm and tsc. Its build prints sources of TypeScript (crates/layout), which are in git:
 * only where the Rust has changed may tsc have read old ones.
 */
async function workThrough(report) {
  const step = (name, work) => announced(name, work, report)
  const [core, scripts] = await Promise.allSettled([
    step('native core, by cargo', compileCore),
    step('packages, by npm ci', installPackages).then(() => inJavaScript(step)),
  ])
  for (const { reason } of [core, scripts]) if (reason !== undefined) throw reason
  if (core.value.isNew) await inJavaScript(step)
  await placeCore(core.value)
}

async function inJavaScript(step) {
  await step('TypeScript', compileTypeScript)
  await step('bundle', bundle)
}

async function announced(name, work, report) {
  const startedMs = performance.now()
  let done = ''
  const print = (state) =>
    report(`set-up: ${name}${state} ${((performance.now() - startedMs) / 1000).toFixed(0)} s${done}`)
  const timer = setInterval(print, PROGRESS_MS, ' ...')
  const result = await work((text) => (done = `, ${text}`)).finally(() => clearInterval(timer))
  if (performance.now() - startedMs > PROGRESS_MS) print(',')
  return result
}
