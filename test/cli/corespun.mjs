/**
 * The `corespun` program as a child process, for tests: what goes in, what comes out, how it ends.
 * It is the built program, started as a shell starts it.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { skipOf } from '../../dist/base/part.test.support.js'

export { skipOf }

/** The built program. */
export const program = fileURLToPath(new URL('./cli/main.js', import.meta.resolve('corespun')))

/** The folder that children run in. */
export const folder = fileURLToPath(new URL('.', import.meta.url))

/**
 * Start `corespun` with `words`.
 * @returns The child, what it wrote so far (`out`, `err`), and `ended`, which resolves to how it ended,
 *   without the messages that {@link withoutNotices} drops.
 */
export function start(words, { env = {}, stdio = 'pipe', cwd = folder } = {}) {
  const child = spawn(process.execPath, [program, ...words], { cwd, env: { ...process.env, ...env }, stdio })
  const started = { child, out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text) => (started.out += text))
  child.stderr?.setEncoding('utf8').on('data', (text) => (started.err += text))
  child.stdin?.on('error', () => {}) // A child that stops reading is what some tests are about.
  started.ended = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) =>
      resolve({ code, signal, out: started.out, err: withoutNotices(started.err) }),
    )
  })
  return started
}

/**
 * What a program wrote, without the messages that a busy machine causes: that a module is still loading, that
 * an event loop is blocked, that a worker ended before Node had written its counters of coverage.
 */
export function withoutNotices(text) {
  return text
    .replace(/^Failed to stringify coverage profile result\n/gm, '')
    .replace(/^corespun: still loading .+; press Ctrl-C to stop\n/gm, '')
    .replace(
      /^\(node:\d+\) Warning: .* has not returned to its event loop .*\n(\(Use `node --trace-.*\n)?/gm,
      '',
    )
}

/** Variables with which the program writes the signals it receives, and receives the first one twice. */
export function hearing({ twice = false } = {}) {
  const preload = new URL('received.mjs', import.meta.url).href
  return { NODE_OPTIONS: `--import=${preload}`, HEARD_TWICE: twice ? '1' : '0' }
}

/** Send a signal to a program that was started with `hearing`, and wait until it has come. */
export async function signalled(started, signal) {
  const count = () => started.err.split(`received ${signal}\n`).length
  const before = count()
  started.child.kill(signal)
  await until(started.child.stderr, () => count() > before)
}

/** Run `corespun` with `words` and the whole of `input`. */
export async function corespun(words, input = '', options = {}) {
  const started = start(words, options)
  started.child.stdin?.end(input)
  return started.ended
}

/** Resolve when `reached()` is true; look again whenever `stream` brings something. */
export function until(stream, reached) {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (!reached()) return
      stream.off('data', look)
      resolve()
    }
    stream.on('data', look)
    stream.on('close', () => reject(new Error('the stream closed first')))
    look()
  })
}

/** `1\n2\n...count\n` */
export function numbers(count) {
  return Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('')
}
