/**
 * The service of examples/service on all cores, with its address and commands to try.
 *
 * The server is the command that a user would type, as a child; this process waits for it, hands signals on
 * and ends as it ends. A reader that goes away (`npm start | head`) ends it too.
 */
import { spawn } from 'node:child_process'
import { inRoot, ROOT } from '../set-up/index.mjs'

const PORT = '8080'

/** A second signal means "at once" to the server, but npm hands on what the terminal has sent already. */
const ECHO_MS = 300

/** What `corespun serve` prints on a terminal. The child has a pipe, which is read here. */
const FINISHING = '\ncorespun: finishing open requests; press Ctrl-C again to stop at once'

/** More of it is shown and not remembered. */
const COMPLAINT_CHARS_MAX = 10_000

/**
 * Serve until a signal.
 * @param {string[]} words More words for `corespun serve`, such as `--port 8081`.
 * @returns {Promise<number>} The exit code: 0 when it was asked to stop.
 */
export async function serveExample(words) {
  const port = words.some((word) => /^(--port\b|-p)/.test(word)) ? [] : ['--port', PORT]
  const command = ['serve', 'examples/service/app.ts', ...port, ...words]
  // In a group of its own: signals of a terminal come to this process alone, which hands each on, once.
  const options = {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  }
  const child = spawn(process.execPath, [inRoot('lib', 'cli', 'main.js'), ...command], options)
  const stop = handOn(child)
  const errors = complaints(child)
  const ended = new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
  const url = await address(child)
  if (url !== undefined) stop.isServing = true
  if (url !== undefined && !stop.asked) introduce(url)
  const code = await ended
  stop.ignore()
  if (code === 2 && url === undefined && !stop.asked) hint(errors())
  return stop.asked ? 0 : code
}

/** Signals go to the child; `asked` from the first one on, `isServing` is set from outside. */
function handOn(child) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  let firstMs
  const onSignal = (signal) => {
    if (firstMs !== undefined && performance.now() - firstMs < ECHO_MS) return
    if (!stop.asked && stop.isServing && process.stderr.isTTY) console.error(FINISHING)
    firstMs ??= performance.now()
    stop.asked = true
    child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal)
  }
  const onGone = () => onSignal('SIGTERM')
  const onExit = () => child.kill('SIGTERM')
  const stop = {
    asked: false,
    isServing: false,
    ignore() {
      process.stdout.off('error', onGone)
      process.stderr.off('error', onGone)
      process.off('exit', onExit)
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
  for (const signal of signals) process.on(signal, onSignal)
  process.stdout.on('error', onGone)
  process.stderr.on('error', onGone)
  process.on('exit', onExit)
  return stop
}

/** Shows the errors of the child; returns a function that returns their beginning. */
function complaints(child) {
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (piece) => {
    process.stderr.write(piece)
    if (text.length < COMPLAINT_CHARS_MAX) text += piece
  })
  return () => text
}

/** The address that the child prints; undefined if it ends without one; its output is then shown. */
function address(child) {
  return new Promise((resolve) => {
    let [text, isFound] = ['', false]
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      if (isFound) return
      text += piece
      const url = /^corespun: serving (http:\/\/\S+) .*\n/m.exec(text)?.[1]
      if (url === undefined) return
      isFound = true
      resolve(url)
    })
    child.stdout.on('close', () => {
      // For example that of `--help`.
      if (!isFound) process.stdout.write(text)
      resolve(undefined)
    })
  })
}

function introduce(url) {
  const print = console.log
  print(`\n  Open  ${url}\n\nor try, in another terminal:\n`)
  print(`  curl -F file=@node_modules/acorn/dist/acorn.js ${url}/api/score`)
  print(`  curl -F file=@node_modules/acorn/dist/acorn.mjs -F timeoutMs=1 ${url}/api/score   # cancelled`)
  print(`  npx corespun run examples/service/pipeline.ts#score 'src/**/*.ts'\n`)
  print('Ctrl-C stops it. `npm run compare` shows the pipeline on one core and on all;')
  print('`npm run report` prints the records beside piscina, fastify, node:http and others.')
}

function hint(text) {
  const taken = Number(/address already in use: \S*:(\d+)/.exec(text)?.[1])
  if (taken < 65_535) console.error(`another port: npm start -- --port ${taken + 1}`)
}
