/**
 * Runs a program of its own in a process of its own, for the tests of what zones do to whole processes.
 *
 * A program is the text of a module that finds `zone`, `Worker` and `thread` (a user-made worker from text)
 * in scope. It is ended when it takes longer than it may, and that is a failure.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'

const PROGRAM_MS_MAX = 120_000

/** URL of the module `corespun/zone` as it was built. */
export const CORESPUN = import.meta.resolve('corespun/zone')

const THREAD = `
import { Worker } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'
/** A user-made worker that runs this module text; it finds zone and parentPort. */
function thread(text, options = {}) {
  const head = \`import { parentPort, workerData } from 'node:worker_threads'
    import { zone } from '${CORESPUN}'
  \`
  return new Worker(new URL('data:text/javascript,' + encodeURIComponent(head + text)), options)
}
`
const HEAD = `import { zone } from '${CORESPUN}'
${THREAD}`

/**
 * Run a program.
 * @param {string} text
 * @param {{ zone?: boolean, flags?: string[] }} options `zone: false`: the main thread loads no Corespun.
 * @returns {Promise<{ code: number | null, signal: string | null, out: string, err: string, ms: number }>}
 */
export async function program(text, { zone = true, flags = [] } = {}) {
  const begunMs = performance.now()
  const args = [...flags, '--input-type=module', '-e', (zone ? HEAD : THREAD) + text]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err += chunk))
  const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS_MAX)
  const [code, signal] = await new Promise((resolve) => child.once('close', (...how) => resolve(how)))
  clearTimeout(timer)
  assert.notEqual(signal, 'SIGKILL', `hangs\n${out}${err}`)
  return { code, signal, out: out.trim(), err: err.trim(), ms: performance.now() - begunMs }
}

/**
 * Run a program and compare its exit code and output.
 * @param {string} text
 * @param {{ code?: number, out?: string | RegExp, err?: RegExp, zone?: boolean, flags?: string[] }} expected
 */
export async function check(text, { code = 0, out = '', err, ...options }) {
  const ended = await program(text, options)
  const shown = JSON.stringify(ended, undefined, 1)
  assert.deepEqual([ended.code, ended.signal], [code, null], shown)
  if (out instanceof RegExp) assert.match(ended.out, out, shown)
  else assert.equal(ended.out, out, shown)
  if (err === undefined) assert.equal(ended.err, '', shown)
  else assert.match(ended.err, err, shown)
  return ended
}
